package agent

import (
	"time"

	"heartbeat/hook"
)

// span is a stretch of time; it has no end while it lasts.
type span struct{ from, to time.Time }

// keepTurns is how many turns are remembered for ignore-own: more than happen between a change
// and the time when it is noticed.
const keepTurns = 64

// turns are the last ones of an agent; a change in its directory during one of them
// is its own doing.
type turns []span

// follow records what a session does from a time on.
func (t *turns) follow(p hook.Phase, now time.Time) {
	in := p == hook.Turn || p == hook.Settling || p == hook.Background || p == hook.Checking
	last := len(*t) - 1
	switch lasts := last >= 0 && (*t)[last].to.IsZero(); {
	case in && !lasts:
		*t = append((*t)[max(0, len(*t)-keepTurns+1):], span{from: now})
	case !in && lasts:
		(*t)[last].to = now
	}
}

// at reports whether the agent was in a turn at a time.
func (t turns) at(at time.Time) bool {
	for _, t := range t {
		if !at.Before(t.from) && (t.to.IsZero() || !at.After(t.to)) {
			return true
		}
	}
	return false
}
