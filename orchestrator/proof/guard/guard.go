// Package guard decides what follows an iteration whose check did not pass: pure
// functions of what the iterations before were like. Given up is always a reason
// out of a closed list.
package guard

import (
	"time"

	"heartbeat/hook"
	"heartbeat/queue"
)

// Rule is what an entry may take; 0 is no limit.
type Rule struct {
	MaxIterations int
	MaxTime       time.Duration
}

// Iteration is one whose check did not pass.
type Iteration struct {
	// Worked is the time from the hand-over to the Stop: no check, and no wait.
	Worked time.Duration `json:"worked"`
	// Said is a digest of the check's output without its digits.
	Said string `json:"said"`
	// Same is true if the agent's files were, before the check, what they were after
	// the check before it. It is false where that is not known.
	Same bool `json:"same,omitempty"`
}

// Past is what is known of the iterations of one entry. The zero value is that of
// an entry whose first check has not ended.
type Past struct {
	Iterations int           `json:"iterations"`
	Worked     time.Duration `json:"worked"`
	// Last are the last three.
	Last []Iteration `json:"last,omitempty"`
	// Waits is how often in a row the agent had to wait because it was too fast.
	Waits int `json:"waits,omitempty"`
}

const (
	// few is how many iterations in a row are compared.
	few = 3
	// fast is what they take on average, at most, to be too fast. The first ones of
	// an entry may be: fastFrom is the first that may not.
	fast     = 15 * time.Second
	fastFrom = 5
	// The waits: as many as most, the first of them base, each one three times as
	// long as the one before, at most Longest.
	most = 3
	base = 10 * time.Second
)

// Longest is the longest wait that After can ask for.
const Longest = hook.LongestPause

// Decision is what follows; its zero value is that the entry is handed over again
// at once.
type Decision struct {
	// Gone is why the entry is given up, or "".
	Gone queue.Reason
	// Wait is how long to wait before it is handed over again.
	Wait time.Duration
}

// After adds an iteration that did not pass, and decides what follows it.
func (p Past) After(i Iteration, r Rule) (Past, Decision) {
	p.Iterations++
	p.Worked += max(0, i.Worked)
	p.Last = append(append([]Iteration(nil), p.Last[max(0, len(p.Last)+1-few):]...), i)
	switch {
	case r.MaxIterations > 0 && p.Iterations >= r.MaxIterations:
		return p, Decision{Gone: queue.MaxIterations}
	case r.MaxTime > 0 && p.Worked >= r.MaxTime:
		return p, Decision{Gone: queue.MaxTime}
	case p.stands():
		return p, Decision{Gone: queue.NoProgress}
	case !p.rushes():
		p.Waits = 0
		return p, Decision{}
	case p.Waits >= most:
		return p, Decision{Gone: queue.TooFast}
	}
	wait := base
	for range p.Waits {
		wait *= 3
	}
	p.Waits++
	return p, Decision{Wait: min(wait, Longest)}
}

// stands reports whether nothing has changed in the last three iterations: neither
// what the check says, nor the files between their checks.
func (p Past) stands() bool {
	if len(p.Last) < few {
		return false
	}
	for _, i := range p.Last[1:] {
		if !i.Same || i.Said != p.Last[0].Said {
			return false
		}
	}
	return true
}

// rushes reports whether the last three took too little time for work.
func (p Past) rushes() bool {
	if p.Iterations < fastFrom || len(p.Last) < few {
		return false
	}
	var sum time.Duration
	for _, i := range p.Last {
		sum += i.Worked
	}
	return sum <= few*fast
}

// Again is how long to wait before a check that gave no verdict is asked again, for
// the nth time in a row from 0: it asked for that, or could not be started.
func Again(n int) time.Duration {
	const first, limit = 10 * time.Second, 5 * time.Minute
	d := first
	for range min(n, 5) {
		d *= 2
	}
	return min(d, limit)
}
