package orchestrator

import (
	"time"

	"heartbeat/hook"
)

// span is a stretch of time; it has no end while it lasts.
type span struct{ from, to time.Time }

// keepTurns is how many turns are remembered for ignore-own: more than happen
// between a change and the look at it.
const keepTurns = 64

// turnsLocked follows an agent's turns, in which what changes in its
// directory is its own doing.
func (a *agent) turnsLocked(p hook.Phase, now time.Time) {
	in := p == hook.Turn || p == hook.Settling || p == hook.Background
	last := len(a.turns) - 1
	switch lasts := last >= 0 && a.turns[last].to.IsZero(); {
	case in && !lasts:
		a.turns = append(a.turns[max(0, len(a.turns)-keepTurns+1):], span{from: now})
	case !in && lasts:
		a.turns[last].to = now
	}
}

// inTurnLocked reports whether an agent's session was in a turn at a time.
func (a *agent) inTurnLocked(at time.Time) bool {
	for _, t := range a.turns {
		if !at.Before(t.from) && (t.to.IsZero() || !at.After(t.to)) {
			return true
		}
	}
	return false
}
