package agent

import (
	"time"

	"heartbeat/orchestrator/status"
)

// blocked is an obstacle that certainly keeps an agent's sessions from working; "": none is
// known. It is not a failure, and ends when a check finds it gone.
type blocked struct {
	why, fix string
	since    time.Time
	// answers, if not "", were in place when a client asked a person at the start of a
	// session. Another session is started when they have changed.
	answers string
	// unasked is true for what an earlier run has left, until it was asked again.
	unasked bool
}

// How soon to check again: the older the obstacle, the later.
const (
	askSoon = 5 * time.Second
	askLate = time.Minute
	// tryAgain is the time after which a session is started although no known answer has
	// changed, to see whether its client still asks.
	tryAgain = 30 * time.Minute
)

// blocks holds the agent until the obstacle that f names is gone.
func (a *Agent) blocks(f Failed, now time.Time) {
	b := blocked{why: f.Text, fix: f.Fix, since: now}
	if a.past.blocked.why != "" {
		b.since = a.past.blocked.since
	}
	a.follow(next{state: status.Held})
	a.past.blocked = b
	a.askLater(now)
}

func (a *Agent) askLater(now time.Time) {
	if !a.wish.removed {
		a.alarms.set(Ask, now.Add(askDelay(now.Sub(a.past.blocked.since))))
	}
}

// askDelay returns how soon to check again for an obstacle of some age.
func askDelay(age time.Duration) time.Duration { return min(max(age/2, askSoon), askLate) }

// Asked takes the result of a check whether the obstacle is still there; nil: it is gone. A
// failure of the check for another reason changes nothing. answers are those in place now;
// see launch.Prepared.
func (a *Agent) Asked(f *Failed, answers string, now time.Time) {
	b := a.past.blocked
	a.past.blocked.unasked = false
	switch {
	case a.life.is == None && a.past.parked.Person:
		a.lookedAtLogin(answers, now)
	case a.life.is != None || b.why == "":
	case f == nil && b.answers == answers && answers != "" && now.Sub(b.since) < tryAgain:
		a.askLater(now)
	case f == nil:
		a.follow(next{state: status.Idle, reason: "what kept its sessions from working is gone"})
	case f.Blocks:
		a.blocks(*f, now)
	default:
		a.askLater(now)
	}
}

// Foresees holds an agent that would start at the next prompt, because its session could not
// work.
func (a *Agent) Foresees(f Failed, now time.Time) {
	if f.Blocks && a.Wants(now) {
		a.blocks(f, now)
	}
}

// Unasked reports whether it is held for what an earlier run found, which may be gone.
func (a *Agent) Unasked() bool { return a.past.blocked.unasked }

// AskNow makes the check happen at once. It returns false if there is no obstacle.
func (a *Agent) AskNow(now time.Time) bool {
	if a.past.blocked.why == "" || a.wish.removed {
		return false
	}
	a.past.blocked.answers = "" // a person wants it to be tried
	a.alarms.set(Ask, now)
	return true
}
