package later

import (
	"context"
	"time"

	"heartbeat/config"
)

// Fleet is what Run needs of a running fleet.
type Fleet interface {
	// LaterAgents are those whose prompts are sent; false: the fleet is busy, ask again.
	LaterAgents() ([]*config.Agent, bool)
	// SendLater queues a prompt. Without an error it is queued, was so before, or is a
	// dead letter.
	SendLater(ctx context.Context, a *config.Agent, p Prompt) error
	// CannotSend is called when prompts of an agent could not be sent, each time; they
	// are tried again.
	CannotSend(a *config.Agent, err error)
}

// lookEvery is how often all folders are looked at, whoever has said that there is
// something new; no wait is longer, so that a clock that was set is noticed.
const lookEvery = 15 * time.Second

// askAgain is how soon a busy fleet is asked again.
const askAgain = time.Second

// Run sends prompts when their time has come, until ctx ends. look is received from
// when somebody has put one there.
func Run(ctx context.Context, f Fleet, look <-chan struct{}) {
	for {
		wait := lookEvery
		now := time.Now().Round(0) // the wall clock, which may be set
		agents, ok := f.LaterAgents()
		if !ok {
			wait = askAgain
		}
		for _, a := range agents {
			next, err := Send(ctx, a, now, func(p Prompt) error { return f.SendLater(ctx, a, p) })
			if err != nil && ctx.Err() == nil {
				f.CannotSend(a, err)
			}
			if !next.IsZero() {
				wait = min(wait, max(0, next.Sub(now)))
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-look:
			timer.Stop()
		}
	}
}
