package screen

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func filtered(output string) string {
	var f Filter
	return string(f.AppendTo(nil, []byte(output)))
}

// What shows gets through as it is: among it what Claude Code 2.1.329 writes.
func TestFilterPassesOnWhatShows(t *testing.T) {
	t.Parallel()
	for _, output := range []string{
		"text, ünïcode, ✳ 你好 👩\u200d💻\r\n\tand a tab\b",
		"\x1b[31m\x1b[1;38;2;255;128;0;4:3mred\x1b[m\x1b[39;49m",
		"\x1b[H\x1b[5;7H\x1b[2A\x1b[3B\x1b[C\x1b[10D\x1b[E\x1b[F\x1b[4G\x1b[6d\x1b[3`\x1b[2a\x1b[2e\x1b[2;3f\x1b[I\x1b[Z",
		"\x1b[J\x1b[1J\x1b[2J\x1b[K\x1b[1K\x1b[2K\x1b[3X\x1b[2L\x1b[2M\x1b[2@\x1b[2P\x1b[2b",
		"\x1b[2;20r\x1b[3S\x1b[2T\x1b7\x1b8\x1b[s\x1b[u\x1bD\x1bE\x1bM\x1b[r",
		"\x1b[?1049h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?25l\x1b[?2026h\x1b[?2026l\x1b[?1;7l",
	} {
		if got := filtered(output); got != output {
			t.Errorf("%q became %q", output, got)
		}
	}
}

// What acts on the terminal of who looks does not.
func TestFilterStopsTheRest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ output, want string }{
		"clipboard":               {"\x1b]52;c;cm0gLXJmIH4=\x07", ""},
		"clipboard, ended by ST":  {"\x1b]52;c;cm0gLXJmIH4=\x1b\\", ""},
		"clipboard, C1":           {"\x9d52;c;eA==\x9c", "52;c;eA=="},
		"clipboard, C1 in UTF-8":  {"\u009d52;c;eA==\u009c", "52;c;eA=="},
		"title":                   {"\x1b]0;✳ Claude Code\x07", ""},
		"link":                    {"\x1b]8;;file:///etc/passwd\x1b\\safe\x1b]8;;\x1b\\", "safe"},
		"notice":                  {"\x1b]9;boo\x07\x1b]777;notify;a;b\x07", ""},
		"colours of the terminal": {"\x1b]11;#ff0000\x07\x1b]4;1;red\x07\x1b]104\x07", ""},
		"asks for colours":        {"\x1b]11;?\x1b\\\x1b]4;1;?\x07", ""},
		"asks what it is":         {"\x1b[c\x1b[0c\x1b[>c\x1b[>0q\x1b[=c\x1bZ", ""},
		"asks how it is":          {"\x1b[5n\x1b[6n\x1b[?6n\x1b[?996n\x1b[x", ""},
		"asks for modes":          {"\x1b[?2026$p\x1b[4$p\x1b[?u", ""},
		"asks for capabilities":   {"\x1bP+q544e\x1b\\\x1bP$qm\x1b\\", ""},
		"asks for its size":       {"\x1b[14t\x1b[18t\x1b[21t", ""},
		"moves its window":        {"\x1b[3;0;0t\x1b[8;1;1t\x1b[2t\x1b[22;0t", ""},
		"keyboard protocols":      {"\x1b[>31u\x1b[=31;1u\x1b[<u\x1b[>4;2m\x1b[>4m\x1b=\x1b>", ""},
		"reports by itself":       {"\x1b[?2031h\x1b[?2048h", ""},
		"modes among others":      {"\x1b[?25;2031;1049;12h", "\x1b[?25;1049h"},
		"old modes":               {"\x1b[4h\x1b[20h\x1b[?3h\x1b[?5h\x1b[?69h", ""},
		"scrollback":              {"\x1b[3J\x1b[03J\x1b[?3J\x1b[1;3J", ""},
		"reset":                   {"\x1bc", reset},
		"soft reset":              {"\x1b[!p", ""},
		"character sets":          {"\x1b(0q\x1b)B\x1b%Gx\x0e\x0f\x1bN\x1bO\x1bn", "qx"},
		"tab stops":               {"\x1bH\x1b[3g\x1b[0g", ""},
		"bell":                    {"\a\x05\x00", ""},
		"the cursor's shape":      {"\x1b[5 q", ""},
		"images":                  {"\x1bPq#0;2;0;0;0#0~~\x1b\\\x1b_Gf=24;AAAA\x1b\\", ""},
		"private messages":        {"\x1b^a\x1b\\\x1bXb\x1b\\", ""},
		"prints":                  {"\x1b[5i\x1b[4i\x1b[?5i", ""},
		"macros and rectangles":   {"\x1b[1*z\x1b[65;1;1;9;9$x\x1b[1;1;2;2*y", ""},
		"mouse by T":              {"\x1b[1;1;1;1;9T", ""},
		"margins":                 {"\x1b[3;20s", ""},
		"C1 control sequence":     {"\x9b6n\u009b6n", "6n6n"},
		"turned around":           {"a\u202egnp.exe\u2066b\u2069", "agnp.exeb"},
		"line separators":         {"a\u2028b\u2029c", "abc"},
		"a string broken off":     {"\x1b]0;x\x1b[31mred", "\x1b[31mred"},
		"a string without an end": {"\x1b]0;x", ""},
		"a sequence cancelled":    {"\x1b[3\x18x\x1b[3\x1ay", "xy"},
		"a sequence broken off":   {"\x1b[3\x1b[31mx", "\x1b[31mx"},
		"a line within one":       {"\x1b[3\n1mx", "\n\x1b[31mx"},
		"a sequence within one":   {"\x1b[3é1mx", "é1mx"},
		"too long":                {"\x1b[" + strings.Repeat("1;", 500) + "mx", "x"},
		"many numbers":            {"\x1b[" + strings.Repeat("1;", 50) + "mx", "\x1b[" + strings.Repeat("1;", 31) + "1mx"},
		"endless repeat":          {"\x1b[2000000000b\x1b[99999999999999999999b", "\x1b[999b\x1b[999b"},
		"not UTF-8":               {"\xff\xc3(\xe2\x9c\x1b[m", "\ufffd\ufffd(\ufffd\x1b[m"},
	}
	for name, tt := range tests {
		if got := filtered(tt.output); got != tt.want {
			t.Errorf("%s: %q became %q, want %q", name, tt.output, got, tt.want)
		}
	}
}

// passes is all that a Filter may let through.
var passes = regexp.MustCompile(`^(?:[^\x00-\x07\x0e-\x1f\x7f-\x{9f}]|\x1b(?:[78DEM]|\[\?[0-9;]+[hl]|\[[0-9;:]*[A-IJ-MPXSTZabdefm@rsu\x60]))*$`)

// Whatever the bytes and wherever they are cut: nothing but text and what
// shows gets through, the same as of the whole, and no more than a constant
// times what came in; text is not touched.
func FuzzFilter(f *testing.F) {
	f.Add([]byte("\x1b]0;✳ Claude\x07a\x1b\x1b\\\x1b[3m\x1bP\x1b\\b\xe2\x9c\xb3\x9d"), uint64(0x5a))
	f.Add([]byte("\x1b\x1b]x\x1b]y\x1b\x1b\\z\x18\x1bXs\x1a"), uint64(7))
	f.Add([]byte("0\x1b\x8dP"), uint64(0x87)) // a dropped byte joined ESC and P
	f.Add([]byte("\x1b[?1049;25;6h\x1b[3\x1b(0\x1b[>4;2m\x1b[c\xc2\x9b6n\xff\xf0\x9f"), uint64(3))
	f.Fuzz(func(t *testing.T, output []byte, cuts uint64) {
		var whole, cut Filter
		want := whole.AppendTo(nil, output)
		var got []byte
		for rest := output; len(rest) > 0; {
			n := min(int(cuts&7)+1, len(rest))
			cuts = cuts>>3 | cuts<<61
			got = cut.AppendTo(got, rest[:n])
			rest = rest[n:]
		}
		if !bytes.Equal(got, want) {
			t.Errorf("cut: %q, whole: %q", got, want)
		}
		if !utf8.Valid(want) || !passes.Match(want) {
			t.Errorf("%q became %q", output, want)
		}
		if len(want) > 8*len(output) || len(whole.seq) > maxSequence || len(whole.char) > utf8.UTFMax {
			t.Errorf("%d bytes became %d, %d and %d are held", len(output), len(want), len(whole.seq), len(whole.char))
		}
		plain := func(r rune) bool { return r != utf8.RuneError && (unicode.IsGraphic(r) || r == '\n') }
		if !bytes.ContainsFunc(output, func(r rune) bool { return !plain(r) || r == '\u2028' || r == '\u2029' }) && !bytes.Equal(want, output) {
			t.Errorf("plain text %q became %q", output, want)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	output := []byte(strings.Repeat("\x1b[38;2;1;2;3m✳ some words of output\x1b[0m\x1b[3;4H\x1b[K", 1000))
	b.SetBytes(int64(len(output)))
	var f Filter
	var dst []byte
	for b.Loop() {
		dst = f.AppendTo(dst[:0], output)
	}
}

// TestAPastScreenStays: the output of a session that has ended vanished from the
// terminal at its end, when it left its alternate screen.
func TestAPastScreenStays(t *testing.T) {
	t.Parallel()
	var page, live strings.Builder
	const said = "\x1b[?1049h\x1b[?25;1047lNot logged in\x1b[?1049l\x1b[?47l"
	for w, want := range map[*strings.Builder]string{&page: "\x1b[?25lNot logged in", &live: said} {
		out := Only(w)
		if w == &page {
			out = Page(w)
		}
		if _, err := io.WriteString(out, said); err != nil || w.String() != want {
			t.Errorf("got %q, %v, want %q", w, err, want)
		}
	}
}
