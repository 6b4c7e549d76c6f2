package agent

import (
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/status"
)

// checking is the check of the entry in flight, with a session or without one.
type checking struct {
	// wanted is true if one is to begin, begun while one goes on. left is true if the
	// one that is wanted is of what a session has left, whose end is yet to be told.
	wanted, begun, left bool
	// recovers is true while what it has left in flight is dealt with.
	recovers bool
	told     *status.Proof // how far it is; nil: nobody has said it
}

// labour is how long the agent has worked since the last verdict, by what its session
// has reported and our own clock.
type labour struct {
	since time.Time // when the stretch began that lasts; or zero
	sum   time.Duration
}

// follow records what a session does from a time on.
func (l *labour) follow(p hook.Phase, now time.Time) {
	if !l.since.IsZero() {
		l.sum += max(0, now.Sub(l.since))
		l.since = time.Time{}
	}
	if p == hook.Turn || p == hook.Settling || p == hook.Background {
		l.since = now
	}
}

// anew forgets what was counted; a stretch that lasts counts from now on.
func (l *labour) anew(now time.Time) {
	l.sum = 0
	if !l.since.IsZero() {
		l.since = now
	}
}

// Worked returns how long the agent has worked on the entry in flight in this
// iteration, as far as this run has seen it. Waiting for a verdict is no work.
func (a *Agent) Worked(now time.Time) time.Duration {
	l := a.labour
	l.follow(hook.Checking, now)
	return l.sum
}

// Judged says that the work so far has its verdict. A session that has brought that
// about has got on, whatever the verdict is, and however the session ends then.
func (a *Agent) Judged(now time.Time) {
	a.life.judged = a.life.is == Live
	a.labour.anew(now)
}

// ToCheck says that the entry in flight is to be checked.
func (a *Agent) ToCheck() { a.check.wanted, a.check.left = true, false }

// LeftToCheck says that what a session has left in flight is to be checked, once the
// session's end is known: what is not proven then is dealt with before another begins.
func (a *Agent) LeftToCheck() { a.check.wanted, a.check.left = true, true }

// Checks reports whether a check goes on, or is to begin.
func (a *Agent) Checks() bool { return a.check.wanted || a.check.begun }

// BeginCheck reports, once, that a check is to begin. Until CheckEnded nothing is started
// for the agent: a check has its directory.
func (a *Agent) BeginCheck() bool {
	if !a.check.wanted || a.check.begun || a.life.is == Recovering || a.life.is == Starting || a.check.left && a.life.is == Live {
		return false
	}
	a.check.wanted, a.check.begun, a.check.left = false, true, false
	return true
}

// Proving says how far the check is.
func (a *Agent) Proving(p status.Proof) {
	if a.check.begun {
		a.check.told = &p
	}
}

// CheckEnded says that nothing is being checked any more. What is in flight without a
// session is dealt with then; what keeps the agent from starting stays.
func (a *Agent) CheckEnded() {
	if !a.check.begun {
		return
	}
	a.check.begun, a.check.told = false, nil
	if a.life.is == None && !a.wish.removed {
		a.life.is, a.life.why, a.check.recovers = Recovering, "its work was checked", true
	}
}

// Proven counts an entry that is done because its check has passed. Where a session
// lives, that one counts it.
func (a *Agent) Proven() {
	if a.life.is != Live {
		a.done.acknowledged++
		a.past.history = history{}
	}
}
