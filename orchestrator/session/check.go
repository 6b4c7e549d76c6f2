package session

import (
	"os"
	"slices"

	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// checkMeter reads from the queue what is being checked of a session's work: a check
// goes on, and comes to its verdict, whether a hook waits for it or not.
type checkMeter struct {
	read []durable.Stamp // of the records of the entry in flight
	now  *Checking       // nil: nothing; the same value as long as it is the same check
}

// look reads it again if it has changed. What cannot be read says nothing.
func (c *checkMeter) look(q *inbox.Queue, path, session string) {
	var stamps []durable.Stamp
	for _, path := range inbox.FlightFiles(path) {
		stamps = append(stamps, durable.StampOf(os.Lstat(path)))
	}
	if slices.EqualFunc(c.read, stamps, durable.Stamp.Same) {
		return
	}
	f, err := q.Peek()
	if err != nil {
		return
	}
	c.read = stamps
	if f == nil || f.State != inbox.Checking || f.Session != session {
		c.now = nil
		return
	}
	now := Checking{Delivery: f.DeliveryID, Iteration: f.Iteration, Check: f.Check}
	if f.Claim != nil {
		now.Since = f.Claim.Since.UTC()
	}
	if c.now == nil || *c.now != now {
		c.now = &now
	}
}
