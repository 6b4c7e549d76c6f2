package attach

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

func dial(t *testing.T, path string) (*Viewer, error) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	return &Viewer{conn: conn, in: bufio.NewReader(conn), stop: func() bool { return true }}, nil
}

func TestKeys(t *testing.T) {
	t.Parallel()
	tests := []struct {
		keys   string
		typed  []string
		passed string
		leaves bool
	}{
		{`ctrl-\`, []string{"abc"}, "abc", false},
		{`ctrl-\`, []string{"abc\x1cdef"}, "abc", true},
		{`ctrl-\`, []string{"\x1b[92;5u"}, "", true},
		{`ctrl-\`, []string{"x\x1b[27;5;92~"}, "x", true},
		{`ctrl-\`, []string{"\x1b[97;5u\x1b"}, "\x1b[97;5u\x1b", false},
		{"ctrl-p,ctrl-q", []string{"\x10", "a"}, "\x10a", false},
		{"ctrl-p,ctrl-q", []string{"\x10", "\x11"}, "", true},
		{"ctrl-p,ctrl-q", []string{"\x10\x10\x11"}, "\x10", true},
		{"Ctrl-P,q", []string{"\x10q"}, "", true},
		{"ctrl-]", []string{"\x1d"}, "", true},
	}
	for _, tt := range tests {
		seq, err := ParseKeys(tt.keys)
		if err != nil {
			t.Errorf("%s: %v", tt.keys, err)
			continue
		}
		l := leaver{seq: seq}
		var passed strings.Builder
		leaves := false
		for _, p := range tt.typed {
			var typed []byte
			typed, leaves = l.pass([]byte(p))
			passed.Write(typed)
		}
		if passed.String() != tt.passed || leaves != tt.leaves {
			t.Errorf("%s, typed %q: passed %q, leaves %v; want %q, %v", tt.keys, tt.typed, passed.String(), leaves, tt.passed, tt.leaves)
		}
	}
	for _, bad := range []string{"", "ctrl-", "ctrl-1", "ab", "ctrl-p,", " "} {
		if _, err := ParseKeys(bad); err == nil {
			t.Errorf("ParseKeys(%q) has no error", bad)
		}
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]bool{
		"":                                   true,
		"\x1b[?1;2c\x1b[I":                   true,
		"\x1b[>41;354;0c":                    true,
		"\x1b[24;80R":                        true,
		"\x1b[<0;10;10M\x1b[<0;10;10m":       true,
		"\x1bP>|xterm(354)\x1b\\":            true,
		"\x1b]11;rgb:0000/0000/0000\x07":     true,
		"\x1b[?997;1n":                       true,
		"a":                                  false,
		"\x1b":                               false,
		"\x1b[A":                             false,
		"\x1b[97;5u":                         false,
		"\x1b[200~pasted\x1b[201~":           false,
		"\x1b[I" + "y":                       false,
		"\x1b]11;rgb:0000/0000/0000\x07text": false,
	} {
		if got := onlyReports([]byte(input)); got != want {
			t.Errorf("onlyReports(%q) = %v", input, got)
		}
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	output := "text\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b[?2004hmore\x1b[?2004l\x1b[31m\x1b[>1u\x1b[?9999h"
	for _, step := range []int{1, 2, 7, len(output)} {
		var m modes
		for at := 0; at < len(output); at += step {
			m.note([]byte(output[at:min(at+step, len(output))]))
		}
		if got, want := string(m.enter()), "\x1b[?25l\x1b[?1000h\x1b[?1006h\x1b[?1049h"; got != want {
			t.Errorf("in pieces of %d: enter %q, want %q", step, got, want)
		}
		if got, want := string(m.leave()), "\x1b[?1049l\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[0m\x1b[r"; got != want {
			t.Errorf("in pieces of %d: leave %q, want %q", step, got, want)
		}
	}
}
