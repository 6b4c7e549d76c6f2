package queue

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxCleaned is how many bytes of the end of an output CleanOutput looks at: escape
// sequences take room.
const MaxCleaned = 16 * MaxShown

// CleanOutput returns the end of what a program has written, as text: at most
// MaxShown bytes of valid UTF-8, without escape sequences and without control
// characters other than newlines and tabs, and without white space at both ends.
// Cleaning it again changes nothing.
func CleanOutput(s string) string {
	if len(s) > MaxCleaned {
		s = s[len(s)-MaxCleaned:]
	}
	s = strings.ToValidUTF8(withoutEscapes(s), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	s = strings.TrimSpace(s)
	if len(s) > MaxShown {
		from := len(s) - MaxShown
		for !utf8.RuneStart(s[from]) {
			from++
		}
		s = strings.TrimSpace(s[from:])
	}
	return s
}

// withoutEscapes removes the sequences that a terminal acts on (ECMA-48): CSI with
// its parameters, strings such as a title up to their end, and two-byte sequences.
func withoutEscapes(s string) string {
	const esc = 0x1b
	if strings.IndexByte(s, esc) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != esc {
			b.WriteByte(s[i])
			i++
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '[':
			i = skipWhile(s, i+1, 0x20, 0x3f)
			i = min(i+1, len(s)) // the final byte
		case strings.IndexByte("]PX^_", c) >= 0:
			i = skipString(s, i+1)
		case c >= 0x20 && c <= 0x2f:
			i = min(skipWhile(s, i, 0x20, 0x2f)+1, len(s))
		case c >= 0x30 && c <= 0x7e:
			i++
		}
	}
	return b.String()
}

func skipWhile(s string, i int, from, to byte) int {
	for i < len(s) && s[i] >= from && s[i] <= to {
		i++
	}
	return i
}

// skipString returns where a control string has ended: after BEL or ESC \. One that
// does not end on its line is taken for text behind its introducer.
func skipString(s string, from int) int {
	for i := from; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		}
	}
	return from
}
