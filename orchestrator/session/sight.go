package session

import (
	"strconv"
	"time"

	"heartbeat/hook"
)

// sight is since when the shim has seen what the session record says, by its
// own clock, which only counts: neither the wall clock, nor time asleep, nor
// what else stands in the record moves a time-out.
type sight struct {
	started time.Time // the session
	bound   time.Time // to a client; zero: not yet

	phase hook.Phase
	since time.Time // of the phase

	events int
	event  time.Time // the last one

	work       string    // which entry in which attempt; "": none
	handedOver time.Time // the entry
	background time.Time // tasks run; zero: none
}

// see takes in what a record says now.
func (s *sight) see(r *hook.Record, now time.Time) {
	if s.started.IsZero() {
		s.started = now
	}
	if s.bound.IsZero() && !r.BoundAt.IsZero() {
		s.bound = now
	}
	if s.since.IsZero() || r.Phase != s.phase {
		s.phase, s.since = r.Phase, now
	}
	if r.Events != s.events {
		s.events, s.event = r.Events, now
	}
	work := ""
	if r.Work != nil {
		work = r.Work.DeliveryID + " " + strconv.Itoa(r.Work.Attempt)
	}
	if work != s.work {
		s.work, s.handedOver = work, now
	}
	switch {
	case len(r.BackgroundTasks) == 0:
		s.background = time.Time{}
	case s.background.IsZero():
		s.background = now
	}
}

// works reports whether the session has an entry.
func (s *sight) works() bool { return s.work != "" }

// active is when the session last changed what it does.
func (s *sight) active() time.Time { return latest(s.since, s.handedOver) }
