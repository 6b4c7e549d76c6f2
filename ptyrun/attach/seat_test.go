package attach

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"heartbeat/internal/testbed"
)

// Who joined got from an agent's terminal, as it was, what set their clipboard
// and their title, and queries, whose answers their terminal typed into the
// session.
func TestHostileTerminal(t *testing.T) {
	t.Parallel()
	hostile := "\x1b]52;c;cm0gLXJmIH4=\x07\x1b]0;owned\x1b\\\x1b[c\x1b[6n\x1b]11;?\x07\x1bP+q544e\x1b\\\u009b6n\x9b6n\x1b[>31u\x1b[3J"
	d, path := open(t, &fakeTerminal{})
	d.Write([]byte("\x1b[?1049h\x1b[?2031h" + hostile + "before\x1b[2;5r\x1b]0;a title that has no end yet "))
	v := join(t, path, Guest{ReadOnly: true})
	in, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shown, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var terminal testbed.Output
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&terminal, shown) })
	var visit Visit
	var sitting sync.WaitGroup
	sitting.Go(func() { visit, err = v.Sit(t.Context(), Seat{In: in, Out: out, ReadOnly: true}) })
	until(t, "what was there before", func() bool { return strings.Contains(terminal.String(), "before") })
	for _, piece := range strings.SplitAfter("and here\x07"+hostile+"\x1b[1mafter\x1b[0m", "") {
		d.Write([]byte(piece))
	}
	until(t, "what comes", func() bool { return strings.Contains(terminal.String(), "\x1b[1mafter\x1b[0m") })
	d.Close("drained")
	sitting.Wait()
	out.Close()
	reading.Wait()
	got := terminal.String()
	if err != nil || visit.Ended != "drained" {
		t.Errorf("%+v, %v", visit, err)
	}
	for _, no := range []string{"\x1b]", "\x1bP", "\x07", "\x9b", "\x1b[c", "\x1b[6n", "\x1b[>", "\x1b[3J", "?2031", "owned", "52;", "and here"} {
		if strings.Contains(got, no) {
			t.Errorf("%q got through: %q", no, got)
		}
	}
	if !strings.HasPrefix(got, "\x1b[?1049h") || !strings.HasSuffix(got, "\x1b[?1049l\x1b[0m\x1b[r\x1b[999H\r\n") {
		t.Errorf("its modes are not set and put back: %q", got)
	}
}

// A terminal that answers queries, as all do, types nothing into a session
// that a person has joined.
func TestNoAnswerIsTypedIn(t *testing.T) {
	t.Parallel()
	term := &fakeTerminal{}
	d, path := open(t, term)
	v := join(t, path, Guest{})
	theirs, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); theirs.Close() })
	var terminal testbed.Output
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := theirs.Read(buf)
			if err != nil {
				return
			}
			_, _ = terminal.Write(buf[:n])
			for range strings.Count(string(buf[:n]), "\x1b[c") {
				_, _ = theirs.WriteString("\x1b[?62;c")
			}
		}
	}()
	var sitting sync.WaitGroup
	sitting.Go(func() { _, _ = v.Sit(t.Context(), Seat{In: tty, Out: tty}) })
	d.Write([]byte("\x1b[c\x1b[0c\x1b[cready"))
	until(t, "it is shown", func() bool { return strings.Contains(terminal.String(), "ready") })
	if _, err := theirs.WriteString("yes"); err != nil {
		t.Fatal(err)
	}
	until(t, "keys arrive", func() bool { return strings.HasSuffix(term.text(), "yes") })
	if got := term.text(); got != "yes" {
		t.Errorf("the session was typed %q", got)
	}
	d.Close("")
	sitting.Wait()
}

// TestWhoIsGreetedIsHeard: the line that says how to leave stood there before the terminal
// was raw. The key that it names ended the program then, and Enter was another key.
func TestWhoIsGreetedIsHeard(t *testing.T) {
	t.Parallel()
	d, path := open(t, &fakeTerminal{})
	v := join(t, path, Guest{})
	theirs, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close(); theirs.Close() })
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	var raw bool
	var sitting sync.WaitGroup
	sitting.Go(func() {
		_, _ = v.Sit(t.Context(), Seat{In: tty, Out: tty, Greet: func() {
			now, err := term.GetState(int(tty.Fd()))
			raw = err == nil && *now != *before
		}})
	})
	d.Close("")
	sitting.Wait()
	if !raw {
		t.Error("the terminal is not raw yet")
	}
}
