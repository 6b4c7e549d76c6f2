package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"heartbeat/hook/foreign"
)

// palette has the six colours; all are empty if there is no terminal, or it or the
// person wants none (NO_COLOR, TERM=dumb).
type palette struct{ red, green, yellow, cyan, dim, reset string }

func paletteFor(f *os.File) palette {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return palette{}
	}
	return palette{
		red: "\x1b[31m", green: "\x1b[32m", yellow: "\x1b[33m", cyan: "\x1b[36m", dim: "\x1b[2m", reset: "\x1b[0m",
	}
}

// columnsOf returns how wide a terminal is; 0 if it is none.
func columnsOf(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// page is the text form of a result, printed in one write. It can only be written
// to by its methods, and these trust no text that they are given: it neither acts
// on a terminal nor begins a line of the page. Lines end where a constant format
// says so.
type page struct {
	buf bytes.Buffer
	palette
	columns int // of the terminal; 0: not known, and pageColumns are meant
	rows    int // of the terminal that the page has to fit into; 0: it need not
	// ours is how a command line for the fleet begins; "": heartbeat.
	ours string
}

// mark is a place in a page: its end when end was called. undo takes back what was
// added behind one.
type mark int

func (p *page) end() mark      { return mark(p.buf.Len()) }
func (p *page) undo(from mark) { p.buf.Truncate(int(from)) }

// apart adds an empty line in front of another part of the page, if there is one.
func (p *page) apart(another bool) {
	if another && p.buf.Len() > 0 {
		p.buf.WriteByte('\n')
	}
}

// height returns how many rows of the terminal the page takes from a place in it on.
func (p *page) height(from mark) (rows int) {
	for line := range strings.Lines(p.buf.String()[from:]) {
		rows += p.rowsOf(line)
	}
	return rows
}

// rowsOf returns how many rows of the terminal a line of the page takes.
func (p *page) rowsOf(line string) int {
	for _, colour := range []string{p.red, p.green, p.yellow, p.cyan, p.dim, p.reset} {
		if colour != "" {
			line = strings.ReplaceAll(line, colour, "")
		}
	}
	w := width(strings.TrimSuffix(line, "\n"))
	if p.columns == 0 || w == 0 {
		return 1
	}
	return (w + p.columns - 1) / p.columns
}

// printf adds text. What it formats stays on one line. Command lines in the format are
// about this fleet.
func (p *page) printf(format string, args ...any) {
	ours := strings.ReplaceAll(p.ours, "%", "%%")
	fmt.Fprintf(&p.buf, withOurs(ours, format), foreign.Safe(args)...)
}

// format returns what printf would add.
func (p *page) format(format string, args ...any) string {
	part := page{ours: p.ours}
	part.printf(format, args...)
	return part.buf.String()
}

// coloured adds text in a colour, on one line.
func (p *page) coloured(colour, text string) {
	reset := p.reset
	if colour == "" {
		reset = ""
	}
	p.buf.WriteString(colour + foreign.Line(text) + reset)
}

// colouredLine adds one line of a text in a colour, and keeps its tabs.
func (p *page) colouredLine(colour, line string) {
	for line := range foreign.Lines(line) {
		reset := p.reset
		if colour == "" {
			reset = ""
		}
		p.buf.WriteString(colour + line + reset + "\n")
	}
}

// whole adds a text with its line breaks, each line after indent. Without an indent
// its lines could pass for others of the page: then it must be all that is printed.
func (p *page) whole(indent, text string) {
	for line := range foreign.Lines(text) {
		if line != "" {
			p.buf.WriteString(indent + line)
		}
		p.buf.WriteByte('\n')
	}
}

// document adds a text of ours as it is: a script, a unit, a schema.
func (p *page) document(text []byte) { p.buf.Write(text) }

// shorten cuts text to n columns and marks the cut.
func shorten(s string, n int) string {
	if width(s) <= n {
		return s
	}
	w := 0
	for i, r := range s {
		if w += runeWidth(r); w > n-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// width returns how many columns a text takes on a terminal. It knows combining
// marks and the wide blocks; clusters of emoji come out a little too wide. Names
// are ASCII by rule, so that is enough, and no library is needed.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// wide holds the blocks that are wide or full-width (Unicode's
// EastAsianWidth.txt, W and F), and the emoji of the supplementary planes.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1},
		{0x2e80, 0x303e, 1},
		{0x3041, 0xa4cf, 1},
		{0xa960, 0xa97c, 1},
		{0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1},
		{0xfe30, 0xfe6f, 1},
		{0xff00, 0xff60, 1},
		{0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x1f300, 0x1f64f, 1},
		{0x1f680, 0x1f6ff, 1},
		{0x1f900, 0x1f9ff, 1},
		{0x20000, 0x3fffd, 1},
	},
}
