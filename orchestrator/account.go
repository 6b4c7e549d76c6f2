package orchestrator

import (
	"time"

	"heartbeat/orchestrator/session"
)

// account is what is known of the account that all agents share: a usage
// limit or a login that ran out concerns all of them.
type account struct {
	until  time.Time // nothing is started before
	parks  int       // in a row, without an entry acknowledged since
	reason string
	// probe is the one agent that may start after a parking, until it has
	// shown that the account works, or for probePatience.
	probe *agent
	since time.Time // of the probe
}

// probePatience is how long other agents wait for the first one after a
// parking: a limit shows within seconds, an entry may take hours.
const probePatience = 2 * time.Minute

// parked is the state of an agent that wants to start while the account is
// parked.
func (c *account) parked() next { return next{state: Parked, until: c.until, reason: c.reason} }

// tries notes that an agent starts a session.
func (c *account) tries(a *agent) {
	if c.parks > 0 && c.probe == nil {
		c.probe, c.since = a, time.Now()
	}
}

// triedLocked reports whether another agent is trying the account.
func (s *Scheduler) triedLocked(a *agent, now time.Time) bool {
	c := &s.account
	if c.probe == nil || c.probe == a {
		return false
	}
	wait := probePatience - now.Sub(c.since)
	if wait > 0 {
		s.lookAgainLocked(wait)
	}
	return wait > 0
}

// worksLocked notes that an agent has acknowledged an entry. One that was
// under way when the account was parked proves nothing.
func (s *Scheduler) worksLocked(a *agent) {
	if s.account.parks > 0 && (s.account.probe == a || !time.Now().Before(s.account.until)) {
		s.account = account{}
		s.slotFreedLocked()
	}
}

// parksLocked is the history to judge a session's end by: parkings are the
// account's. Sessions that hit one limit together count once.
func (s *Scheduler) parksLocked(a *agent, now time.Time) history {
	h := a.history
	if h.parks = s.account.parks; now.Before(s.account.until) {
		h.parks = max(0, h.parks-1)
	}
	return h
}

// tellAccountLocked takes what a session's end says of the account, and
// returns what follows for the agent.
func (s *Scheduler) tellAccountLocked(a *agent, o session.Outcome, n next, h history) next {
	if s.account.probe == a {
		s.account.probe = nil
	}
	if n.state != Parked {
		if o.Acknowledged > 0 {
			s.worksLocked(a)
		}
		return n
	}
	s.account.parks = h.parks
	s.account.reason = "the account of " + a.name + ": " + describe(o)
	if n.until.After(s.account.until) {
		s.account.until = n.until
	}
	n.until = s.account.until
	for _, w := range s.slots.everyone() {
		s.followLocked(w, s.account.parked())
	}
	return n
}
