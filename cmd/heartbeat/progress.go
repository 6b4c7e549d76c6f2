package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"heartbeat/hook/foreign"
)

// progressLine tells who waits how far a command is: one line on stderr that is
// written over again and again or, without a terminal, a line each
// --heartbeat-interval. With JSON it shows nothing: step does. It may be used
// concurrently.
type progressLine struct {
	app     *app
	to      *os.File // the terminal, or nil
	palette palette
	// every belongs to lines without a terminal; 0: none.
	every time.Duration
	began time.Time

	mu    sync.Mutex // guards the rest
	next  time.Time  // of a line without a terminal
	drawn time.Time
}

func newProgressLine(a *app) *progressLine {
	l := &progressLine{app: a, began: time.Now()}
	switch {
	case a.Output == "json":
	case term.IsTerminal(int(a.stdio.err.Fd())):
		l.to, l.palette = a.stdio.err, a.out.paintErr
	default:
		l.every = a.HeartbeatInterval
		l.next = l.began.Add(l.every)
	}
	return l
}

// newSlowLine is newProgressLine for what mostly takes no time worth a line.
func newSlowLine(a *app) *progressLine {
	l := newProgressLine(a)
	l.drawn = l.began
	return l
}

// show replaces the line.
func (l *progressLine) show(text string) {
	l.app.step(text)
	l.draw(text)
}

func (l *progressLine) draw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil {
		l.line(text)
		return
	}
	if time.Since(l.drawn) < drawEvery {
		return
	}
	l.drawn = time.Now()
	l.app.bottom.show(l.palette.dim + shorten(foreign.Line(text), l.columns()-1) + l.palette.reset)
}

// line is draw without a terminal.
func (l *progressLine) line(text string) {
	now := time.Now()
	if l.every <= 0 || now.Before(l.next) {
		return
	}
	l.next = now.Add(l.every)
	took := now.Sub(l.began).Round(time.Second)
	if l.app.LogFormat == "json" { // who reads records gets a record
		l.app.log.Info(text, "after", took)
		return
	}
	_, _ = fmt.Fprintf(l.app.bottom, "%s: %s\n", took, foreign.Line(text))
}

func (l *progressLine) columns() int {
	columns, _, err := term.GetSize(int(l.to.Fd()))
	if err != nil || columns < leastColumns {
		return pageColumns
	}
	return columns
}

// barWidth is how many characters the bar has, drawEvery the least time between two
// lines on a terminal.
const (
	barWidth  = 20
	drawEvery = 100 * time.Millisecond
)

// bar is show for what takes long for many agents: which one is worked on.
func (l *progressLine) bar(what string, done, of int, agent string) {
	l.gauge(fmt.Sprintf("%s %s (%d of %d)", what, agent, done+1, of), done, of)
}

// gauge is show with how much is done.
func (l *progressLine) gauge(text string, done, of int) {
	l.app.step(text)
	if l.to != nil {
		full := barWidth * done / max(of, 1)
		text = "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "] " + text
	}
	l.draw(text)
}

// end removes it.
func (l *progressLine) end() {
	if l.to != nil {
		l.app.bottom.show("")
	}
}

// livePage shows one page in place of the last, as far as the terminal has room for
// it. Without a terminal each page follows the last.
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
		whole := &page{palette: p.palette, columns: p.columns, rows: s.rows() - 1, ours: p.ours}
		r.text(whole)
		p.buf.WriteString("\x1b[H")
		left := whole.rows
		for line := range strings.Lines(whole.buf.String()) {
			if left -= whole.rowsOf(line); left < 0 {
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
