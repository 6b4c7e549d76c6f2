package main

import (
	"os"
	"strings"

	"golang.org/x/term"

	"heartbeat/hook/foreign"
)

// progressLine is one line on stderr that is written over again and again while
// a person waits. Without a terminal, or with JSON, it shows nothing.
type progressLine struct {
	to      *os.File
	palette palette
	shown   bool
}

func newProgressLine(a *app) *progressLine {
	if a.Output == "json" || !term.IsTerminal(int(a.stdio.err.Fd())) {
		return &progressLine{}
	}
	return &progressLine{to: a.stdio.err, palette: a.out.paintErr}
}

// show replaces the line.
func (l *progressLine) show(text string) {
	if l.to == nil {
		return
	}
	columns, _, err := term.GetSize(int(l.to.Fd()))
	if err != nil || columns < leastColumns {
		columns = pageColumns
	}
	l.shown = true
	_, _ = l.to.WriteString("\r" + clearLine + l.palette.dim + shorten(foreign.Line(text), columns-1) + l.palette.reset)
}

// end removes it.
func (l *progressLine) end() {
	if l.shown {
		_, _ = l.to.WriteString("\r" + clearLine)
	}
}

// clearLine erases from the cursor to the end of the line (ECMA-48, EL).
const clearLine = "\x1b[K"

// livePage shows one page in the place of the last, as far as the terminal has room
// for it. Without a terminal each page comes behind the last.
type livePage struct{ rows func() int }

func newLivePage(a *app) *livePage {
	if a.Output == "json" || !term.IsTerminal(int(a.stdio.out.Fd())) {
		return &livePage{}
	}
	_, _ = a.stdio.out.WriteString("\x1b[?1049h") // the alternate screen, as less(1) has it
	return &livePage{func() int {
		_, rows, err := term.GetSize(int(a.stdio.out.Fd()))
		if err != nil {
			return 24
		}
		return rows
	}}
}

// show replaces what is shown.
func (s *livePage) show(a *app, r result) error {
	return a.out.emit(r, func(p *page) {
		if s.rows == nil {
			r.text(p)
			p.buf.WriteByte('\n')
			return
		}
		whole := &page{palette: p.palette, columns: p.columns}
		r.text(whole)
		p.buf.WriteString("\x1b[H")
		left := s.rows() - 1
		for line := range strings.Lines(whole.buf.String()) {
			if left--; left < 0 {
				break
			}
			p.buf.WriteString(strings.TrimSuffix(line, "\n") + clearLine + "\r\n")
		}
		p.buf.WriteString("\x1b[J") // what is left below of the page before
	})
}

func (s *livePage) leave(a *app) {
	if s.rows != nil {
		_, _ = a.stdio.out.WriteString("\x1b[?1049l")
	}
}
