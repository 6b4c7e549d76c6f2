package attach

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"heartbeat/hook/foreign"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/screen"
)

// Seat is the terminal of a person who joins a session.
type Seat struct {
	In, Out *os.File
	// Leave are the keys with which the person leaves the session.
	Leave Keys
	// ReadOnly passes no keys on, and ctrl-c leaves too. In need not be a terminal.
	ReadOnly bool
	// Greet, if not nil, is called once keys are read, before anything is shown: until then
	// Enter is another key, and the one that leaves may end the program.
	Greet func()
}

// Guest returns the guest that a person at this seat is.
func (s Seat) Guest() Guest {
	rows, cols := ptyrun.WindowSize(s.Out)
	return Guest{ReadOnly: s.ReadOnly, Size: Size{Rows: rows, Cols: cols}}
}

// Visit is how a person's visit ended.
type Visit struct {
	// Left is true if the person left or ctx ended; the session continues.
	Left bool
	// Ended is why the session ended otherwise, or "" if the connection was lost.
	Ended foreign.Text
}

// Sit connects a person's terminal with the session until the person leaves or the
// session ends, and restores the terminal.
func (v *Viewer) Sit(ctx context.Context, s Seat) (Visit, error) {
	var left sync.Once
	visit := Visit{}
	gone := make(chan struct{})
	leave := func() {
		left.Do(func() {
			close(gone)
			_ = v.Close() // ends Next
		})
	}
	defer context.AfterFunc(ctx, leave)()
	if !s.ReadOnly {
		defer ptyrun.FollowWindow(s.Out, func(rows, cols int) {
			_ = v.Resize(Size{rows, cols}) // a lost connection ends Next, too
		})()
	}
	if !s.ReadOnly || ptyrun.IsTerminal(s.In) {
		defer ptyrun.ReadKeys(s.In, s.keys(v, leave), leave)()
	}
	if s.Greet != nil {
		s.Greet()
	}
	ended, err := v.show(s.Out)
	visit.Ended = foreign.Text(ended)
	select {
	case <-gone:
		visit.Left, err = true, nil
	case <-ctx.Done(): // Join's connection ends with it, too, maybe before leave runs
		visit.Left, err = true, nil
	default:
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return visit, err
}

// ctrlC leaves a session that is only looked at.
const ctrlC = 0x03

// keys returns what to do with typed keys.
func (s Seat) keys(v *Viewer, leave func()) func([]byte) {
	leaver := leaver{seq: s.Leave}
	return func(p []byte) {
		typed, leaves := leaver.pass(p)
		if s.ReadOnly {
			leaves = leaves || strings.ContainsRune(string(typed), ctrlC)
		} else if len(typed) > 0 {
			_ = v.Type(typed) // as above
		}
		if leaves {
			_ = v.Leave() // as above
			leave()
		}
	}
}

// show shows the session until it ends or the connection does. The terminal gets
// only the output that a screen.Filter passes on, and gets back the modes that it
// had.
func (v *Viewer) show(out io.Writer) (ended string, err error) {
	var (
		m     modes
		shown screen.Filter
	)
	say := func(f *screen.Filter, p []byte) error {
		p = f.AppendTo(nil, p)
		m.note(p)
		_, err := out.Write(p)
		return err
	}
	defer func() { _, _ = out.Write(append(m.leave(), "\x1b[999H\r\n"...)) }()
	if err := say(&screen.Filter{}, v.Session.Modes); err != nil {
		return "", err
	}
	for {
		e, err := v.Next()
		switch {
		case err != nil:
			return "", err
		case e.Ended != "":
			return e.Ended, nil
		case e.Past != nil:
			shown.AppendTo(nil, e.Past) // it may end in the middle of a sequence
			err = say(&screen.Filter{}, snapshot(v.Session.Size, e.Past))
		case e.Output != nil:
			err = say(&shown, e.Output)
		}
		if err != nil {
			return "", err
		}
	}
}

// snapshot returns what the last output shows, without its colours. The output that
// a nudge causes is painted over it.
func snapshot(s Size, past []byte) []byte {
	lines := screen.Text(s.Rows, s.Cols, past)
	return []byte("\x1b[2J\x1b[H" + strings.Join(lines, "\r\n"))
}
