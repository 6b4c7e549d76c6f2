package queue

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestAnOutputIsText that can be handed over.
func TestAnOutputIsText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1b[1;31mFAIL\x1b[0m a_test.go:7\r\n\tx\x07": "FAIL a_test.go:7\n\tx",
		"\x1b]0;a title\x07ok\x1b(B":                   "ok",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\":     "link",
		"\x1b]0;it never ends\nok":                     "0;it never ends\nok",
		"10%\r20%\r":                                   "10%\n20%",
		"a\xffb\u202ec\u009b":                          "a\uFFFDbc",
		" \n ":                                         "",
		"\x1b":                                         "",
		"\x1b[":                                        "",
	} {
		if got := CleanOutput(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := CleanOutput(strings.Repeat("é", MaxShown) + "the end"); len(got) > MaxShown || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d bytes", len(got))
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
		in = append(in, rapid.StringMatching(`[\x1b\[\]a\r\n\\m;0]{0,40}`).Draw(t, "text")...)
		got := CleanOutput(strings.Repeat(string(in), rapid.SampledFrom([]int{1, 1, 1000}).Draw(t, "times")))
		if !utf8.ValidString(got) || len(got) > MaxShown || CleanOutput(got) != got {
			t.Fatalf("%q", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Fatalf("%q has a control character", got)
		}
	})
}
