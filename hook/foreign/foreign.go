// Package foreign makes text that others wrote safe to show: agents, their
// files' names, what hooks and commands print, prompts, the client's words.
// Such text must neither act on a terminal nor pass for a line of ours.
//
// Escape sequences begin with a control character, so without those nothing
// acts. C1 controls (U+0080 to U+009F) are among them, which some terminals
// carry out also as UTF-8; characters that turn the direction of text around,
// which show other text than there is; and the invisible ones that nobody
// writes by hand.
package foreign

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is text that others wrote. Whatever prints it, formats it or logs it gets
// its Line; as JSON it is whole, with everything that acts escaped. Use Raw to
// compare it, keep it or pass it on.
type Text string

// Raw returns the text as it was written.
func (t Text) Raw() string { return string(t) }

// String returns the text as Line does.
func (t Text) String() string { return Line(string(t)) }

// Format implements fmt.Formatter: every verb formats the Line, also in slog.
func (t Text) Format(f fmt.State, verb rune) {
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), Line(string(t)))
}

// Acts reports whether a character may do more than be displayed, or is not a
// character.
func Acts(r rune) bool {
	switch {
	case r < ' ' || r >= 0x7f && r < 0xa0, r == utf8.RuneError:
		return true
	case r < 0x600:
		return r == '\u00ad' // a hyphen that shows only at the end of a line
	case r == '\u200c' || r == '\u200d': // joiners, which several scripts and emoji need
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point) || unicode.Is(unicode.Variation_Selector, r) && r > 0xffff
}

// Line returns text on one line, with U+FFFD in place of what acts. Line breaks and
// tabs become spaces.
func Line(text string) string { return safe(text, false) }

// Short returns text on one line, like Line, of at most so many bytes, with "…"
// where it was cut.
func Short(text string, limit int) string {
	text = Line(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// Cut returns at most limit bytes of a text without splitting a character.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// Lines returns the lines of a text, without their ends and with U+FFFD in place of
// what acts; tabs remain. The caller must make sure that none can pass for a line
// of ours: by indenting them, if other lines are printed beside them.
func Lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(safe(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), true)) {
				return
			}
		}
	}
}

func safe(text string, tabs bool) string {
	if clean(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i, r := range text {
		switch {
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"):
		case r == '\t' && tabs:
			b.WriteByte('\t')
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case Acts(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func clean(text string) bool {
	for _, r := range text {
		if Acts(r) {
			return false
		}
	}
	return true
}

// JSON returns a JSON document in which what acts is escaped: it occurs only in
// strings and names there, and means the same. A document of several lines keeps
// them.
func JSON(doc []byte) []byte {
	if !bytes.ContainsFunc(doc, escapes) {
		return doc
	}
	out := make([]byte, 0, len(doc)+16)
	for len(doc) > 0 {
		r, n := utf8.DecodeRune(doc)
		switch {
		case r == utf8.RuneError || !escapes(r):
			out = append(out, doc[:n]...)
		case r > 0xffff:
			high, low := utf16(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		doc = doc[n:]
	}
	return out
}

// escapes reports whether a character is escaped in JSON. Characters below ' ' are
// always escaped in strings, and are white space between values.
func escapes(r rune) bool { return r >= 0x7f && r != utf8.RuneError && Acts(r) }

func utf16(r rune) (high, low rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// EscapingJSON returns a writer of JSON documents, each in one write, that passes
// them on to w as JSON returns them.
func EscapingJSON(w io.Writer) io.Writer { return escaping{w} }

type escaping struct{ w io.Writer }

// Write implements io.Writer.
func (e escaping) Write(p []byte) (int, error) {
	if _, err := e.w.Write(JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Safe wraps the arguments of a format, so that each is formatted as a Line,
// whatever its type.
func Safe(args []any) []any {
	safe := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case bool, int, int64, uint64, float64:
			safe[i] = a
		default:
			safe[i] = argument{a}
		}
	}
	return safe
}

type argument struct{ v any }

// Format implements fmt.Formatter.
func (a argument) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, Line(fmt.Sprintf(fmt.FormatString(f, verb), a.v)))
}
