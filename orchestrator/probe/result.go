package probe

import (
	"fmt"
	"slices"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// Result is what a probe has found.
type Result struct {
	// Client is the program, as it was started.
	Client string `json:"client"`
	// Version is what it says of its version, "" where that is nothing we know;
	// Measured is the one that the promises were made for.
	Version  string `json:"version"`
	Measured string `json:"measured"`
	// Isolated is true if nothing could leave the machine: the client ran in a network
	// of its own. Otherwise Open says why not.
	Isolated bool      `json:"isolated"`
	Open     string    `json:"open,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// DurationMS is how long it took, in milliseconds.
	DurationMS int64 `json:"duration_ms"`
	// Kept and Broken are the promises that were tried. What neither names was not: it
	// depends on one that is broken.
	Kept   []Promise `json:"kept"`
	Broken []Breach  `json:"broken"`
	// Once are what was seen once, and not when it was tried again: most often because the
	// machine was busy.
	Once []foreign.Text `json:"once"`
	// Failure is why the client could not be tried, or "". Then nothing is known of it.
	Failure foreign.Text `json:"failure,omitempty"`
}

// Breach is a promise that a client does not keep.
type Breach struct {
	Promise Promise `json:"promise"`
	// Does is what it would do, Seen what was seen instead, Otherwise what follows.
	Does      string       `json:"does"`
	Seen      foreign.Text `json:"seen"`
	Otherwise string       `json:"otherwise"`
}

// Verdict is what is known of a client.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "good"
	Bad     Verdict = "bad"
	Unknown Verdict = "unknown" // it could not be tried
)

// Verdict sums up the result.
func (r *Result) Verdict() Verdict {
	switch {
	case len(r.Broken) > 0:
		return Bad
	case r.Failure != "" || len(r.Kept) == 0:
		return Unknown
	}
	return Good
}

// Untried are the promises that were not tried.
func (r *Result) Untried() []Promise {
	return slices.DeleteFunc(Promises(), func(p Promise) bool {
		return slices.Contains(r.Kept, p) || slices.ContainsFunc(r.Broken, func(b Breach) bool { return b.Promise == p })
	})
}

// Name is the client by its name and version.
func (r *Result) Name() string {
	if r.Version == "" {
		return r.Client
	}
	return client.Claude.Name + " " + r.Version
}

// tally collects what scenes have seen.
type tally struct {
	kept   map[Promise]bool
	broken map[Promise]string
	once   []string
}

func newTally() tally { return tally{kept: map[Promise]bool{}, broken: map[Promise]string{}} }

func (t *tally) add(other tally) {
	for p := range other.kept {
		t.kept[p] = true
	}
	for p, seen := range other.broken {
		if t.broken[p] == "" {
			t.broken[p] = seen
		}
	}
}

// asIn is what a try has seen, and of what is broken what one of the others has seen too.
func (t tally) asIn(others []tally) tally {
	both := newTally()
	for p := range t.kept {
		if t.broken[p] == "" {
			both.kept[p] = true
		}
	}
	for p, seen := range t.broken {
		if slices.ContainsFunc(others, func(other tally) bool { return other.broken[p] != "" }) {
			both.broken[p] = seen
		}
	}
	return both
}

// doubt takes in what one try has seen, where the last one has not.
func (t *tally) doubt(once []tally, last tally) {
	for _, try := range once {
		for p, seen := range try.broken {
			if last.broken[p] == "" {
				t.once = append(t.once, fmt.Sprintf("%s: %s", p, seen))
			}
		}
	}
}

// tell writes it into a result, in the order of the promises.
func (t tally) tell(r *Result) {
	r.Kept, r.Broken = []Promise{}, []Breach{}
	r.Once = []foreign.Text{}
	for _, seen := range t.once {
		r.Once = append(r.Once, foreign.Text(seen))
	}
	for _, p := range Promises() {
		switch seen := t.broken[p]; {
		case seen != "":
			r.Broken = append(r.Broken, Breach{p, p.Does(), foreign.Text(seen), p.Otherwise()})
		case t.kept[p]:
			r.Kept = append(r.Kept, p)
		}
	}
}
