package agent

import (
	"time"

	"heartbeat/orchestrator/status"
)

// blocked is what keeps an agent's sessions from working, for certain: "" where
// nothing is known. It is no failure, and ends when it is asked again and gone.
type blocked struct {
	why, fix string
	since    time.Time
	// answers, if not "", were in place when a session's client asked a person at
	// its start: another session is started when they have changed.
	answers string
}

// How soon to check again: the older it is, the later.
const (
	askSoon = 5 * time.Second
	askLate = time.Minute
	// tryAgain is when a session is started to see whether its client still asks,
	// although no known answer has changed.
	tryAgain = 30 * time.Minute
)

// blocks holds the agent until what f names is gone.
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

// askDelay is when to ask again about what is so old.
func askDelay(age time.Duration) time.Duration { return min(max(age/2, askSoon), askLate) }

// Asked is whether what keeps its sessions from working is still there: nil where
// nothing is known of it. Any other failure than that says nothing about it.
// answers are those that are in place now; see launch.Prepared.
func (a *Agent) Asked(f *Failed, answers string, now time.Time) {
	b := a.past.blocked
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

// Foresees holds an agent that would start at the next prompt, where nothing could
// work then.
func (a *Agent) Foresees(f Failed, now time.Time) {
	if f.Blocks && a.Wants(now) {
		a.blocks(f, now)
	}
}

// AskNow has it asked again at once. It returns false where nothing keeps them.
func (a *Agent) AskNow(now time.Time) bool {
	if a.past.blocked.why == "" || a.wish.removed {
		return false
	}
	a.past.blocked.answers = "" // somebody wants it to be tried
	a.alarms.set(Ask, now)
	return true
}
