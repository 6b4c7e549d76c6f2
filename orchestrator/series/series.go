// Package series keeps what each agent does in each ten minutes, for 400 days: queue depth,
// prompts, sessions, fires and how late they were, turns, tokens, cost. It is for looking back
// when the events and the records of what was spent are gone. Nothing is decided by it.
//
// It is the table series. Only slots in which something happened have a row, and those in which
// a run was there to look. Events (Counter) and records (Bill) are added in the transaction that
// writes them, so that a kill at any moment leaves none out and counts none twice. That is why
// no row is worked out later: what makes an entry done stands in several events, of which those
// of Stops are removed after days, and a question over all of them would take seconds.
package series

import (
	"time"

	"heartbeat/orchestrator/usage"
)

// Slot is how much time a point covers.
const Slot = 10 * time.Minute

// Point is what happened in one slot, or, added up, in several.
type Point struct {
	// At is when the slot, or the first of them, began.
	At time.Time `json:"at"`
	// Queued is the most entries that were queued at once, counted each minute.
	Queued int64 `json:"queued"`
	// Done counts prompts that were done, Failed those that were given up.
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"`
	// Sessions counts the sessions that ended.
	Sessions int64 `json:"sessions"`
	// Fires counts the fires of triggers, Late is the longest delay of a scheduled one.
	Fires int64         `json:"fires"`
	Late  time.Duration `json:"-"`
	usage.Sum
}

// Then adds what the same agent did at another time.
func (p Point) Then(q Point) Point {
	queued := max(p.Queued, q.Queued)
	p = p.Beside(q)
	p.Queued = queued
	return p
}

// Beside adds what another agent did at the same time.
func (p Point) Beside(q Point) Point {
	return Point{
		p.At, p.Queued + q.Queued, p.Done + q.Done, p.Failed + q.Failed, p.Sessions + q.Sessions, p.Fires + q.Fires,
		max(p.Late, q.Late), p.Plus(q.Sum),
	}
}

// slotOf returns the number of a time's slot, counted from 1970.
func slotOf(t time.Time) int64 { return t.Unix() / int64(Slot/time.Second) }

func startOf(slot int64) time.Time { return time.Unix(slot*int64(Slot/time.Second), 0) }
