package session

import "heartbeat/queue"

// checkMeter says what is being checked of a session's work: a check goes on, and comes to its
// verdict, whether a hook waits for it or not.
type checkMeter struct {
	now *Checking // nil: nothing; the same value as long as it is the same check
}

// look takes what is in flight for the session.
func (c *checkMeter) look(g *queue.Given) {
	if g == nil || g.State != queue.Checking {
		c.now = nil
		return
	}
	now := Checking{Delivery: g.Delivery, Iteration: g.Iteration, Check: g.Check}
	if !g.Claimed.IsZero() {
		now.Since = g.Claimed.UTC()
	}
	if c.now == nil || *c.now != now {
		c.now = &now
	}
}
