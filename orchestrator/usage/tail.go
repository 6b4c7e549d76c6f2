package usage

import (
	"time"

	"heartbeat/hook/client"
)

// A client writes its transcript behind: a line is on disk a while after what it says. A
// client that is killed loses the lines that were not written yet, always the last ones.
// So what is lost is known by what happened after the last line.

// tail is how the client's own transcript ends.
type tail struct {
	at    time.Time // of the newest line
	calls bool      // the last answer calls tools, of which none has a result
	// told is true if it ends with the client's own count, which the client writes when
	// it ends. before is what that was when the session began: a copy of an older
	// conversation has it too.
	told   bool
	before float64
}

func (t *tail) take(s client.Spending) {
	if s.At.After(t.at) {
		t.at = s.At
	}
	switch t.told = s.Cost > t.before; {
	case s.Message != "":
		t.calls = s.Calls
	case s.Cost > 0, s.Asks, s.AsksAgain, s.Fails, s.Cut:
		t.calls = false
	}
}

// asides are the transcripts of subagents that end with what the model was asked. The
// client writes that down before it asks (measured in 2.1.329).
type asides map[string]bool

func (a *asides) take(s client.Spending, path string) {
	switch {
	case s.Asks, s.AsksAgain:
		if *a == nil {
			*a = asides{}
		}
		(*a)[path] = true
	case s.Message != "", s.Fails, s.Cut:
		delete(*a, path)
	}
}

// Tail is how far the transcript of a session was written.
type Tail struct {
	At     time.Time // of its newest line; zero: it has none of this session
	Asking bool      // it ends with what the model was asked
	Asides int       // how many subagents' transcripts end with that
}

// Unwritten returns the turns that are known to have begun after all that was written:
// the delivery of each, or "" where that is not known.
type Unwritten func(Tail) []string

// Tail returns how far the transcript was written.
func (c *Counter) Tail() Tail {
	return Tail{At: c.tail.at, Asking: c.asked || c.again, Asides: len(c.asides)}
}
