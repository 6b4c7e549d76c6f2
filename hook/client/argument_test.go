package client

import (
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// changed are the code points that 2.1.329 strips from a prompt argument, or
// turns into a newline, where a letter stands on either side.
var changed = []unicode.Range32{
	{0x00, 0x08, 1},
	{0x0b, 0x1f, 1},
	{0x7f, 0x9f, 1},
	{0xad, 0xad, 1},
	{0x34f, 0x34f, 1},
	{0x61c, 0x61c, 1},
	{0x115f, 0x1160, 1},
	{0x17b4, 0x17b5, 1},
	{0x180b, 0x180f, 1},
	{0x200b, 0x200f, 1},
	{0x2028, 0x202e, 1},
	{0x2060, 0x206f, 1},
	{0x3164, 0x3164, 1},
	{0xfe00, 0xfe0f, 1},
	{0xfeff, 0xfeff, 1},
	{0xffa0, 0xffa0, 1},
	{0xfff0, 0xfffb, 1},
	{0x1107f, 0x1107f, 1},
	{0x13430, 0x1343f, 1},
	{0x16fe4, 0x16fe4, 1},
	{0x1bca0, 0x1bca3, 1},
	{0x1d173, 0x1d17a, 1},
	{0xe0000, 0xe0fff, 1},
}

// TestWhatArgvChangesComesByTheFirstStop: an entry with a byte order mark, a
// soft hyphen or ultracode reached the model changed, was not recognised, and
// was given twice.
func TestWhatArgvChangesComesByTheFirstStop(t *testing.T) {
	t.Parallel()
	for _, c := range changed {
		for r := rune(c.Lo); r <= rune(c.Hi); r++ {
			for _, text := range []string{"a" + string(r) + "b", string(r), "a\n" + string(r), string(r) + string(r)} {
				if carriedByArgument(text) {
					t.Errorf("%U: %+q would be changed", r, text)
				}
			}
		}
	}
	for _, text := range []string{
		"use ultracode", "ULTRACODE.", "<pasted_content id=1>x</pasted_content>", "</PASTED_CONTENT>", "\xff", "half \xe2\x82",
		"a\u200db", "\U0001f680\u200d\u200d\U0001f680", "\U0001f680\u200da", "a\u200d\U0001f680", "❤\ufe0f\ufe0f", "text\ufe0e",
		"b\u094d\u200dष", "ب\u200c\u200cب", "1\ufe0f2", "\U0001f3fb\u200d\U0001f680", "\U0001f680\u200d\U0001f3fb",
		"🏴\U000e0067\U000e0062\U000e007f", "邉\U000e0100", "c:\\\u202apath", strings.Repeat("x", maxArgument+1),
	} {
		if carriedByArgument(text) {
			t.Errorf("%.40q would be changed", text)
		}
	}
}

// TestEverydayTextsGoWithTheStart: they cost no turn more.
func TestEverydayTextsGoWithTheStart(t *testing.T) {
	t.Parallel()
	texts, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(texts)) {
		if !carriedByArgument(text) {
			t.Errorf("%q costs a turn more", text)
		}
	}
	fit := 0
	for r := ' '; r <= 0x33fff; r++ {
		if utf8.ValidRune(r) && carriedByArgument("a"+string(r)+"b") {
			fit++
		}
	}
	if fit < 150_000 { // of 149,000 assigned (Unicode 15) and 6,400 private ones
		t.Errorf("%d characters fit", fit)
	}
}
