package session

import (
	"slices"
	"strconv"
	"time"

	"heartbeat/hook"
)

// sight is since when the shim has seen what it knows, by its own clock, which only
// counts: neither the wall clock, nor time asleep, nor times in the session record
// move a time-out. What an agent can do for itself, for example by coming and going,
// does not restart a time.
type sight struct {
	looked  time.Time
	started time.Time // the session
	bound   time.Time // to a client; zero: not yet

	phase hook.Phase
	since time.Time // of the phase

	events int
	event  time.Time // the last one

	ruling hook.End  // "": none
	ruled  time.Time // since it stands

	entry entrySight

	// free is for how long the session has done something without an entry, minus
	// how long it has rested, since the queue last went on or an idle turn began.
	free   time.Duration
	went   int       // how many entries the queue had passed at the last look
	ticked time.Time // which idle turn was the last one; zero: there was none

	background time.Time // tasks run; zero: none
}

// entrySight is since when the session has had its entry.
type entrySight struct {
	work      string // which entry in which attempt and iteration; "": none
	iteration int    // the latest one of this entry
	// given is when that began. handedOver lies as far back as the session has had
	// an entry without the queue going on.
	given, handedOver time.Time
	passed            int           // how many entries the queue had passed at given
	worked            time.Duration // without an entry: how far back the last one's handedOver was
}

// see updates it with what is known now: rests is true if the session does nothing.
func (s *sight) see(r *hook.Record, does doing, now time.Time) {
	passed := r.Acknowledged + r.SetAside + r.Undone
	if s.started.IsZero() {
		s.started, s.looked = now, now
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
	s.seeRuling(r.Ruling, now)
	s.seeFree(r, passed, does, now)
	s.seeWork(r.Work, passed, now)
	switch {
	case len(r.BackgroundTasks) == 0:
		s.background = time.Time{}
	case s.background.IsZero():
		s.background = now
	}
	s.looked = now
}

func (s *sight) seeRuling(r *hook.Ruling, now time.Time) {
	var why hook.End
	if r != nil {
		why = r.Why
	}
	if why != s.ruling {
		s.ruling, s.ruled = why, now
	}
}

// doing is what a session does while it has no entry.
type doing int

const (
	acts  doing = iota // a turn, as far as is known
	waits              // a hook of ours waits for work
	rests              // the same, and its terminal is quiet
)

// seeFree counts what is done without an entry. Waiting for work is doing nothing, also
// where the client shows a spinner meanwhile; each turn of on-idle: tick has its own time,
// as a prompt has.
func (s *sight) seeFree(r *hook.Record, passed int, does doing, now time.Time) {
	past, tick := now.Sub(s.looked), lastTick(r)
	switch {
	case passed != s.went, !tick.IsZero() && !tick.Equal(s.ticked):
		s.free, s.went, s.ticked = 0, passed, tick
	case s.works() || r.Attached > 0 || does == waits:
	case does == rests:
		s.free = max(0, s.free-past)
	default:
		s.free += past
	}
}

// lastTick says which idle turn our hooks have begun last, by when they did; zero: none.
func lastTick(r *hook.Record) time.Time {
	for _, a := range slices.Backward(r.Answers) {
		if a.Answer == hook.IdleTurn {
			return a.At
		}
	}
	return time.Time{}
}

// seeWork: another entry has its own time once the queue has gone on.
func (s *sight) seeWork(w *hook.Work, passed int, now time.Time) {
	work := ""
	if w != nil {
		work = w.DeliveryID + " " + strconv.Itoa(w.Attempt) + " " + strconv.Itoa(w.Iteration)
	}
	if work == s.entry.work {
		return
	}
	spent := s.entry.worked
	if s.works() {
		spent = now.Sub(s.entry.handedOver)
	}
	if passed != s.entry.passed {
		spent, s.entry.iteration = 0, 0
	}
	if w != nil && w.Iteration > s.entry.iteration {
		if s.entry.iteration > 0 { // a verdict has come: the next turn has its own time
			spent = 0
		}
		s.entry.iteration = w.Iteration
	}
	s.entry.work, s.entry.given, s.entry.handedOver, s.entry.worked, s.entry.passed = work, now, now.Add(-spent), spent, passed
}

// works reports whether the session has an entry.
func (s *sight) works() bool { return s.entry.work != "" }

// active returns when the session last changed what it does.
func (s *sight) active() time.Time { return latest(s.since, s.entry.given) }
