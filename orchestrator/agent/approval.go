package agent

import (
	"time"

	"heartbeat/orchestrator/status"
)

// Awaits says which approval the agent waits for; nil: none. A live session ends after
// its turn, and nothing is started until there is an answer: waiting holds no session.
func (a *Agent) Awaits(w *status.Approval) {
	was := a.wish.awaits
	a.wish.awaits = w
	switch {
	case w != nil && was == nil:
		a.Finish(a.awaitsReason())
	case w == nil && was != nil:
		a.idle, a.queue.stale = "its approval has an answer", true
	}
}

func (a *Agent) awaitsReason() string { return status.ForApproval + a.wish.awaits.Question.String() }

// IsAnswered says that the answer to the agent's request is queued. The next session continues
// the conversation in which it asked.
func (a *Agent) IsAnswered(now time.Time) {
	a.wish.answered = now
	a.queue.stale = true
}

// answerWithin is how long a queued answer may wait for a session and still be given in the
// conversation in which the agent asked.
const answerWithin = 7 * 24 * time.Hour

// resumesUntil returns until when sessions continue that conversation; zero: they do not.
func (a *Agent) resumesUntil() time.Time {
	if a.wish.answered.IsZero() {
		return time.Time{}
	}
	return a.wish.answered.Add(answerWithin)
}

// heardAnswer records that a session which began after the answer was queued has worked.
func (a *Agent) heardAnswer(acknowledged int) {
	if acknowledged > 0 && a.life.started.After(a.wish.answered) {
		a.wish.answered = time.Time{}
	}
}
