package agent

import (
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/status"
)

// checking is the check of the entry in flight, with a session or without one.
type checking struct {
	// wanted is true if a check has to begin, begun while one is in progress. left is true if
	// the wanted check is about what a session left whose end is not reported yet.
	wanted, begun, left bool
	// recovers is true while the entry that the session left in flight is recovered.
	recovers bool
	told     *status.Proof // how far the check is; nil: not known
}

// labour is how long the agent has worked since the last verdict, by the reports of its session
// and our own clock.
type labour struct {
	since time.Time // when the present stretch of work began; or zero
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

// restart starts to count from zero; the present stretch counts from now on.
func (l *labour) restart(now time.Time) {
	l.sum = 0
	if !l.since.IsZero() {
		l.since = now
	}
}

// Worked returns how long the agent has worked on this iteration of the entry in flight, as far
// as this run has seen it. Waiting for a verdict does not count.
func (a *Agent) Worked(now time.Time) time.Duration {
	l := a.labour
	l.follow(hook.Checking, now)
	return l.sum
}

// Judged says that the work so far has its verdict. The session that brought it about has made
// progress, whatever the verdict is and however the session ends.
func (a *Agent) Judged(now time.Time) {
	a.life.judged = a.life.is == Live
	a.labour.restart(now)
}

// ToCheck says that the entry in flight has to be checked.
func (a *Agent) ToCheck() { a.check.wanted, a.check.left = true, false }

// LeftToCheck says that the entry which a session left in flight has to be checked once the
// session's end is known. If it is not proven then, it is recovered before another session
// begins.
func (a *Agent) LeftToCheck() { a.check.wanted, a.check.left = true, true }

// Checks reports whether a check is in progress or has to begin.
func (a *Agent) Checks() bool { return a.check.wanted || a.check.begun }

// BeginCheck reports, once, that a check has to begin. Until CheckEnded nothing is started for
// the agent, because the check uses its directory.
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

// CheckEnded says that the check is over. Then an entry in flight without a session is
// recovered. What else keeps the agent from starting stays.
func (a *Agent) CheckEnded() {
	if !a.check.begun {
		return
	}
	a.check.begun, a.check.told = false, nil
	if a.life.is == None && !a.wish.removed {
		a.past.left.inFlight = nil // the recovery finds it again where it still is
		a.life.is, a.life.why, a.check.recovers = Recovering, "its work was checked", true
	}
}

// Proven counts an entry that is done because its check has passed, unless a live session
// counts it.
func (a *Agent) Proven() {
	if a.life.is != Live {
		a.done.acknowledged++
		a.past.history = history{}
	}
}
