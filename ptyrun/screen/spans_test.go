package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpans: what looks the same is one, blanks at the end are none, and colours are what
// they are like.
func TestSpans(t *testing.T) {
	t.Parallel()
	s := New(6, 30)
	defer s.Close()
	write := func(text string) {
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("plain \x1b[1;31mbold red\x1b[0m rest  \r\n")
	write("\x1b[38;2;215;119;87morange\x1b[39m \x1b[38;5;8mgray\x1b[39m \x1b[97mwhite\x1b[0m\r\n\r\n")
	write("\x1b[48;2;20;80;30m+ added \x1b[0m\x1b[7m \x1b[0m\r\n")
	write("\x1b[4;3;9;2mall\x1b[0m\x1b[8mhidden\x1b[0m 日本\x1b]8;;https://evil.example\x07link\x1b]8;;\x07")
	want := [][]Span{
		{{"plain ", Style{}}, {"bold red", Style{Text: Red, Bold: true}}, {" rest", Style{}}},
		{{"orange", Style{Text: Yellow}}, {" ", Style{}}, {"gray", Style{Text: Gray}}, {" white", Style{}}},
		{},
		{{"+ added ", Style{Back: Green}}, {" ", Style{Swapped: true}}},
		{{"all", Style{Faint: true, Italic: true, Underlined: true, Crossed: true}}, {"       日本link", Style{}}},
	}
	if d := cmp.Diff(want, s.Spans()); d != "" {
		t.Error(d)
	}
	for y, row := range s.Spans() {
		var b strings.Builder
		for _, span := range row {
			b.WriteString(span.Text.Raw())
		}
		if y < 3 && strings.TrimRight(b.String(), " ") != s.Lines()[y] {
			t.Errorf("row %d: %q, in Lines %q", y, b.String(), s.Lines()[y])
		}
	}
}

// TestHues of the sixteen colours of a terminal.
func TestHues(t *testing.T) {
	t.Parallel()
	s := New(2, 40)
	defer s.Close()
	if _, err := s.Write([]byte("\x1b[30ma\x1b[31mb\x1b[32mc\x1b[33md\x1b[34me\x1b[35mf\x1b[36mg\x1b[37mh\x1b[90mi\x1b[91mj\x1b[92mk\x1b[93ml\x1b[94mm\x1b[95mn\x1b[96mo\x1b[97mp")); err != nil {
		t.Fatal(err)
	}
	got := map[string]Hue{}
	for _, span := range s.Spans()[0] {
		got[span.Text.Raw()] = span.Style.Text
	}
	want := map[string]Hue{"a": None, "b": Red, "c": Green, "d": Yellow, "e": Blue, "f": Magenta, "g": Cyan, "h": None, "i": Gray, "j": Red, "k": Green, "l": Yellow, "m": Blue, "n": Magenta, "o": Cyan, "p": None}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
