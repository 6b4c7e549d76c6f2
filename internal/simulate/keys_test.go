package simulate

import (
	"fmt"
	"strings"
	"testing"
)

// What a terminal's bytes mean, in one piece and byte by byte.
func TestParseKeys(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"text\r":                             "text enter",
		"é\r":                                "é enter",
		"\x1b":                               "escape",
		"\x1b\x1b":                           "escape escape",
		"\x03\x04\x7f":                       "interrupt end backspace",
		"\x1b[A\x1b[B":                       "up down",
		"\x1b[?62;22c\x1b[I":                 "", // a terminal's replies
		"\x1bP>|xterm(370)\x1b\\x":           "x",
		"\x1b]11;rgb:0/0/0\a":                "",
		"\x1b[200~a\rb\x1b[201~\r":           "a\nb enter",
		"\x1b[200~" + "not ended":            "",
		"line\nmore":                         "line\nmore",
		"a\xff":                              "a\ufffd",
		"\x1b[" + strings.Repeat("1", 100):   "",
		"x\x1b[200~\x1b[201~" + "y" + "\x1b": "xy escape",
	} {
		if got := keysOf([]byte(in), len(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := keysOf([]byte(in), 1); got != want {
			t.Errorf("%q byte by byte: %q, want %q", in, got, want)
		}
	}
	// In one write Alt eats the letter.
	if got := keysOf([]byte("\x1btext\r"), 6); got != "ext enter" {
		t.Errorf("ESC and text at once: %q", got)
	}
}

// keysOf feeds b in pieces of size and names the keys; texts are joined.
func keysOf(b []byte, size int) string {
	keys := make(chan key, len(b)+1)
	var rest []byte
	for len(b) > 0 {
		n := min(size, len(b))
		rest = parseKeys(append(rest, b[:n]...), false, keys)
		b = b[n:]
	}
	parseKeys(rest, true, keys)
	close(keys)
	names := map[keyKind]string{
		keyEnter: "enter", keyEscape: "escape", keyInterrupt: "interrupt", keyEnd: "end",
		keyBackspace: "backspace", keyUp: "up", keyDown: "down",
	}
	var out []string
	text := ""
	for k := range keys {
		if k.kind == keyText {
			text += k.text
			continue
		}
		if text != "" {
			out, text = append(out, text), ""
		}
		out = append(out, fmt.Sprint(names[k.kind]))
	}
	if text != "" {
		out = append(out, text)
	}
	return strings.Join(out, " ")
}
