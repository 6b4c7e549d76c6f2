package main

import (
	"os"

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
