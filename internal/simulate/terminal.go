package simulate

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// terminal is the screen and the keyboard. Like the client's, it stops the
// session when nobody reads the screen: print waits for room.
type terminal struct {
	in, out *os.File
	state   *term.State
	alt     bool
	keys    chan key
	writes  chan string
	written chan struct{} // the writer has ended

	mu      sync.Mutex
	closed  bool
	spinner string // what runs; "": nothing
	since   time.Time
	frame   int
	spun    bool // a spinner stands on the last line
	stopped chan struct{}
}

// What the client asks of a terminal at its start; it needs no answer.
const (
	queries = "\x1b[?2004h\x1b[?1004h\x1b[?2031h\x1b]0;✳ Claude Code\a\x1b[>0q\x1b[?u\x1b[c"
	altOn   = "\x1b[?1049h\x1b[2J\x1b[H\x1b[?1000h\x1b[?1006h"
	altOff  = "\x1b[?1006l\x1b[?1000l\x1b[?1049l"
	undo    = "\x1b[?2031l\x1b[?1004l\x1b[?2004l\x1b]0;\a\x1b[?25h"
)

var frames = []rune("·✢✳✶✻✽")

// spinInterval makes some 300 bytes a second of a hook that takes its time.
const spinInterval = 120 * time.Millisecond

func openTerminal(in, out *os.File) (*terminal, error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("cannot set the terminal up: %w", err)
	}
	t := &terminal{
		in: in, out: out, state: state, alt: os.Getenv("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN") != "1",
		keys: make(chan key, 256), writes: make(chan string, 64),
		written: make(chan struct{}), stopped: make(chan struct{}),
	}
	go t.write()
	go t.turnSpinner()
	go readKeys(in, t.keys)
	t.send(queries)
	if t.alt {
		t.send(altOn)
	}
	return t, nil
}

// write is the only writer; a terminal that is gone swallows everything.
func (t *terminal) write() {
	defer close(t.written)
	gone := false
	for s := range t.writes {
		if !gone {
			_, err := t.out.WriteString(s)
			gone = err != nil
		}
	}
}

// send waits for room in the queue, unless the client is ending.
func (t *terminal) send(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	select {
	case t.writes <- s:
	case <-t.stopped:
	}
}

// print shows lines below what is there.
func (t *terminal) print(text string) {
	text = "\r\x1b[K" + strings.ReplaceAll(printable(text), "\n", "\r\n") + "\r\n"
	t.send(text)
}

// tell shows lines if there is room; the loop must not wait for a reader.
func (t *terminal) tell(text string) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	select {
	case t.writes <- "\r\x1b[K" + strings.ReplaceAll(printable(text), "\n", "\r\n") + "\r\n":
	default:
	}
}

// printable keeps a prompt's control characters from the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f {
			return '\ufffd'
		}
		return r
	}, text)
}

// spin shows that something runs, until the function it returns is called.
func (t *terminal) spin(what string) (stop func()) {
	t.mu.Lock()
	before, since := t.spinner, t.since
	t.spinner, t.since = what, time.Now()
	t.mu.Unlock()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.spinner, t.since = before, since
	}
}

// turnSpinner draws the spinner while there is one; an idle screen is quiet.
func (t *terminal) turnSpinner() {
	tick := time.NewTicker(spinInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.drawSpinner()
		case <-t.stopped:
			return
		}
	}
}

func (t *terminal) drawSpinner() {
	// print holds the lock while it waits for room; the frame is not worth
	// waiting for.
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if t.closed || t.spinner == "" && !t.spun {
		return
	}
	s := "\r\x1b[K"
	if t.spun = t.spinner != ""; t.spun {
		t.frame++
		s = fmt.Sprintf("\r%c Working… (%s · %ds)\x1b[K", frames[t.frame%len(frames)],
			t.spinner, int(time.Since(t.since).Seconds()))
	}
	select {
	case t.writes <- s:
	default:
	}
}

// stopWaiting lets nothing wait for a reader of the screen any more.
func (t *terminal) stopWaiting() {
	select {
	case <-t.stopped:
	default:
		close(t.stopped)
	}
}

// close restores the terminal; a screen that nobody reads is not waited for.
func (t *terminal) close(farewell string) {
	s := undo
	if t.alt {
		s = altOff + s
	}
	t.stopWaiting()
	t.mu.Lock()
	t.closed = true
	select {
	case t.writes <- s + farewell:
	default:
	}
	close(t.writes)
	t.mu.Unlock()
	select {
	case <-t.written:
	case <-time.After(200 * time.Millisecond):
	}
	// The terminal may be gone; then there is nothing to restore.
	_ = term.Restore(int(t.in.Fd()), t.state)
}

// gone reports whether the other side of the terminal was closed.
func (t *terminal) gone() bool {
	_, _, err := term.GetSize(int(t.out.Fd()))
	return err != nil
}
