package orchestrator

import (
	"fmt"
	"math/rand/v2"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/sources"
)

// State is what an agent is doing (DESIGN.md 7).
type State string

// The states. An agent is in one at a time.
const (
	Idle       State = "idle"        // nothing to do
	Waiting    State = "waiting"     // work is queued, no session slot is free
	Starting   State = "starting"    // applying, recovering, launching
	Running    State = "running"     // a session lives
	Ending     State = "ending"      // its session is being ended
	BackingOff State = "backing-off" // until a time, after a failure
	Parked     State = "parked"      // usage limit or authentication of the account: until a time
	Held       State = "held"        // too many restarts, or paused: needs a person
)

// Back-off after failures: base doubled for each further one, up to the limit,
// then drawn from the upper half (jitter).
const (
	backoffBase = 2 * time.Second
	backoffMax  = 5 * time.Minute
	parkBase    = time.Minute
	parkMax     = time.Hour
)

// restartRule bounds restarts of one agent.
type restartRule struct {
	max    int
	window time.Duration
}

// history is what the policy remembers of an agent's failures.
type history struct {
	failures int         // in a row, without an acknowledgement
	parks    int         // in a row
	restarts []time.Time // of failures, within the window
}

// next is what follows a session's end.
type next struct {
	state  State
	until  time.Time // for backing-off and parked
	reason string
}

// after is the restart policy: a pure function of how a session ended, whether
// work is left in the queue, what went before, and time. A session is good
// when it acknowledged an entry; one that left work and acknowledged none is a
// failure, whatever it calls itself, or it would be started for ever.
func after(o session.Outcome, left bool, h history, rule restartRule, now time.Time, roll float64) (next, history) {
	if o.Acknowledged > 0 {
		h = history{}
	}
	switch o.Why {
	case hook.EndShutdown:
		return next{state: Idle, reason: describe(o)}, h
	case hook.EndDrained, hook.EndReleased:
		if o.Acknowledged > 0 || !left {
			return next{state: Idle, reason: describe(o)}, h
		}
	case hook.EndAPIFailure:
		if parks(o.Detail) {
			h.parks++
			d := sources.Backoff(h.parks, parkBase, parkMax, roll)
			return next{state: Parked, until: now.Add(d), reason: describe(o)}, h
		}
	case hook.EndTimeout, hook.EndRunaway, hook.EndUnattended, hook.EndStalled, hook.EndDialog,
		hook.EndStartTimeout, hook.EndCrashed, hook.EndExited:
	}
	return failed(o, h, rule, now, roll)
}

func failed(o session.Outcome, h history, rule restartRule, now time.Time, roll float64) (next, history) {
	h.failures++
	recent := h.restarts[:0:0]
	for _, t := range h.restarts {
		if now.Sub(t) < rule.window {
			recent = append(recent, t)
		}
	}
	if h.restarts = recent; !o.NoRoom {
		h.restarts = append(recent, now)
	}
	if len(h.restarts) > rule.max && !o.NoRoom && o.Why != hook.EndAPIFailure {
		return next{state: Held, reason: fmt.Sprintf("%d failures within %s, the last: %s",
			len(h.restarts), rule.window, describe(o))}, h
	}
	d := sources.Backoff(h.failures, backoffBase, backoffMax, roll)
	return next{state: BackingOff, until: now.Add(d), reason: describe(o)}, h
}

// counts reports whether an interruption uses up one of an entry's attempts:
// only when the client really ran and the end was not our wish.
func counts(o session.Outcome) bool {
	switch o.Why {
	case hook.EndAPIFailure, hook.EndDialog, hook.EndStartTimeout, hook.EndShutdown:
		return false
	}
	return o.Bound
}

// describe is one line about how a session ended.
func describe(o session.Outcome) string {
	s := string(o.Why)
	if o.Why == hook.EndExited {
		s = fmt.Sprintf("exited with code %d", o.ExitCode)
	}
	if o.Detail != "" {
		s += " (" + o.Detail + ")"
	}
	return s
}

func roll() float64 { return rand.Float64() }
