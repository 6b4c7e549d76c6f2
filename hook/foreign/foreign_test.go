package foreign_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/foreign"
)

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, ünïcode ✳ 你好 👩‍💻 ❤️":    "plain, ünïcode ✳ 你好 👩‍💻 ❤️",
		"one\ntwo\r\nthree\tfour\rfive": "one two three four\ufffdfive",
		"\x1b]52;c;eA==\a\x1b[31m":      "\ufffd]52;c;eA==\ufffd\ufffd[31m",
		"\u009b6n\u0085\u007f\x00":      "\ufffd6n\ufffd\ufffd\ufffd",
		"a\u202egnp.exe\u2066\u200f":    "a\ufffdgnp.exe\ufffd\ufffd",
		"a\u2028b\u2029c":               "a\ufffdb\ufffdc",
		"\u200b\ufeff\u2060\U000e0041":  "\ufffd\ufffd\ufffd\ufffd",
		"\xff\xc2":                      "\ufffd\ufffd",
		"":                              "",
	} {
		if got := foreign.Line(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	got := slices.Collect(foreign.Lines("one\r\n\ttwo\x1b[m\n\nthree\rfour\u2028"))
	if want := []string{"one", "\ttwo\ufffd[m", "", "three\ufffdfour\ufffd"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whoever prints a Text gets its line, however it is printed.
func TestTextCannotBePrintedRaw(t *testing.T) {
	t.Parallel()
	text := foreign.Text("a\nb\x1b[m\u202e\u009b")
	const want = "a b\ufffd[m\ufffd\ufffd"
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "text", text)
	for _, got := range []string{
		text.String(), fmt.Sprint(text), fmt.Sprintf("%s", text), fmt.Sprintf("%v", text), fmt.Sprintf("%+v", text),
		fmt.Errorf("%s", text).Error(), strings.Trim(fmt.Sprint([]foreign.Text{text}), "[]"),
		strings.Trim(fmt.Sprint(struct{ T foreign.Text }{text}), "{}"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := fmt.Sprintf("%.1s|%-20s|%q", text, text, text); got != "a|"+want+strings.Repeat(" ", 20-len([]rune(want)))+`|"`+want+`"` {
		t.Errorf("got %q", got)
	}
	if strings.ContainsAny(log.String(), "\x1b\u202e\u009b") {
		t.Errorf("logged %q", log.String())
	}
	if text.Raw() != string(text) {
		t.Errorf("raw %q", text.Raw())
	}
	if doc, err := json.Marshal(text); err != nil || !json.Valid(doc) {
		t.Errorf("%s, %v", doc, err)
	}
}

type stringer struct{}

func (stringer) String() string { return "s\x1b" }

func TestSafe(t *testing.T) {
	t.Parallel()
	got := fmt.Sprintf("%s %v %d %-4s| %v %v %s\n", foreign.Safe([]any{
		"a\nb", errors.New("e\x1b"), 7, "x", []string{"l\n"}, stringer{}, 2 * time.Second,
	})...)
	if want := "a b e\ufffd 7 x   | [l ] s\ufffd 2s\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A document means the same, and nothing in it acts.
func FuzzJSON(f *testing.F) {
	f.Add("a\u009b6n\u202e\U000e0041\x1b]0;\a\n\"\\\u2028\xff\x7f")
	f.Fuzz(func(t *testing.T, text string) {
		var doc bytes.Buffer
		enc := json.NewEncoder(&doc)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		safe := foreign.JSON(doc.Bytes())
		var want, got map[string]string
		if err := errors.Join(json.Unmarshal(doc.Bytes(), &want), json.Unmarshal(safe, &got)); err != nil {
			t.Fatalf("%v: %q", err, safe)
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("%q became %q", want, got)
		}
		if bytes.ContainsFunc(safe, func(r rune) bool { return r != '\n' && r != '\ufffd' && foreign.Acts(r) }) {
			t.Errorf("%q acts", safe)
		}
		if line := foreign.Line(text); strings.ContainsFunc(line, func(r rune) bool { return r != '\ufffd' && foreign.Acts(r) }) || foreign.Line(line) != line {
			t.Errorf("%q became %q", text, line)
		}
	})
}
