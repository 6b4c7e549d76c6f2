package simulate

import (
	"regexp"
	"strings"
	"unicode"
)

// ownTag is a tag that the client puts around what is pasted; in a prompt it
// may not be forged.
var ownTag = regexp.MustCompile(`<(/?pasted_content)`)

// typedPrompt is a prompt argument as the client takes it (2.1.329): control
// and invisible characters are stripped, separators are newlines, and a tag of
// its own is escaped.
func typedPrompt(arg string) string {
	var out []rune
	all := []rune(strings.ToValidUTF8(arg, "\ufffd"))
	for i, r := range all {
		switch {
		case r == 0x85 || r == 0x2028 || r == 0x2029:
			out = append(out, '\n')
		case r == '\n' || r == '\t' || !unicode.Is(stripped, r) || meant(out, all[i:]):
			out = append(out, r)
		}
	}
	return ownTag.ReplaceAllString(string(out), `<\$1`)
}

// toModel is what the client appends to a prompt that has its keyword.
func toModel(prompt string) string {
	if keyword.MatchString(prompt) {
		return prompt + "\n"
	}
	return prompt
}

var keyword = regexp.MustCompile(`(?i)(^|\s)ultracode([\s.,!?]|$)`)

var stripped = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00, 0x1f, 1},
		{0x7f, 0x9f, 1},
		{0xad, 0xad, 1},
		{0x34f, 0x34f, 1},
		{0x61c, 0x61c, 1},
		{0x115f, 0x1160, 1},
		{0x17b4, 0x17b5, 1},
		{0x180b, 0x180f, 1},
		{0x200b, 0x200f, 1},
		{0x202a, 0x202e, 1},
		{0x2060, 0x206f, 1},
		{0x3164, 0x3164, 1},
		{0xfe00, 0xfe0f, 1},
		{0xfeff, 0xfeff, 1},
		{0xffa0, 0xffa0, 1},
		{0xfff0, 0xfffb, 1},
	},
	R32: []unicode.Range32{
		{0x1107f, 0x1107f, 1},
		{0x13430, 0x1343f, 1},
		{0x16fe4, 0x16fe4, 1},
		{0x1bca0, 0x1bca3, 1},
		{0x1d173, 0x1d17a, 1},
		{0xe0000, 0xe0fff, 1},
	},
	LatinOffset: 3,
}

// meant reports whether an invisible character stands where it does something:
// joiners behind letters of scripts that have some and between pictures,
// selectors behind pictures and what keycaps are made of. Which these are is
// known here only roughly.
func meant(before, rest []rune) bool {
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	picture := func(r rune) bool { return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) && r > 0xffff }
	switch rest[0] {
	case 0xfe0e, 0xfe0f:
		return picture(last) || strings.ContainsRune("‼⁉ℹ↔〰", last) || len(rest) > 1 && rest[1] == 0x20e3
	case 0x200d:
		between := len(rest) > 1 && picture(rest[1]) && (picture(last) || last == 0xfe0f)
		return between || joins(before)
	case 0x200c:
		return joins(before)
	}
	return false
}

func joins(before []rune) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if !unicode.Is(unicode.M, before[i]) {
			return before[i] >= 0x620 && before[i] < 0x1800 && unicode.Is(unicode.Lo, before[i])
		}
	}
	return false
}
