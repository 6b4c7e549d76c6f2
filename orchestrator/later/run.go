package later

import (
	"context"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/deadline"
)

// Fleet is what Run needs of a running fleet.
type Fleet interface {
	// LaterAgents are those whose prompts are sent; false: the fleet is busy, ask again.
	LaterAgents() ([]*config.Agent, bool)
	// SendLater queues a prompt. Without an error it is queued, was so before, or is a
	// dead letter.
	SendLater(ctx context.Context, a *config.Agent, p Prompt) error
	// CannotSend is called when prompts of an agent could not be sent, each time; they
	// are tried again. It is called with nil once none has to be any more.
	CannotSend(a *config.Agent, err error)
}

// lookEvery is how often all folders are looked at, whoever has said that there is
// something new; no wait is longer, so that a clock that was set is noticed.
const lookEvery = 30 * time.Second

// askAgain is how soon a busy fleet is asked again.
const askAgain = time.Second

// Run sends prompts when their time has come, until ctx ends. look is received from
// when somebody has put one there. An agent whose folder somebody else has locked
// delays no other.
func Run(ctx context.Context, f Fleet, look <-chan struct{}) { runBy(ctx, f, look, time.Now) }

// runBy is Run by a clock.
func runBy(ctx context.Context, f Fleet, look <-chan struct{}, now func() time.Time) {
	r := run{Fleet: f, now: now, sending: map[string]bool{}, not: map[string]time.Time{}, fails: map[string]bool{}, ends: map[string]time.Time{}, ended: make(chan sent)}
	defer r.senders.Wait()
	for {
		timer := time.NewTimer(r.turn(ctx))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-look:
		case s := <-r.ended:
			r.note(ctx, s)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// run is one Run. Agents are known by their homes.
type run struct {
	Fleet
	sending map[string]bool
	not     map[string]time.Time // those that failed, until when they are not tried again
	fails   map[string]bool      // those of whose failure the fleet knows
	ended   chan sent
	now     func() time.Time

	waiting sync.Mutex           // guards the following
	ends    map[string]time.Time // :: prompt that waits for a length of time → its deadline
	senders sync.WaitGroup
}

// sent is how sending the due prompts of an agent has ended.
type sent struct {
	agent *config.Agent
	err   error
}

// turn begins to send what is due, and returns how long there is nothing more to do.
func (r *run) turn(ctx context.Context) (wait time.Duration) {
	agents, ok := r.LaterAgents()
	if !ok {
		return askAgain
	}
	wait = lookEvery
	now := r.now().Round(0) // the wall clock, which may be set
	for _, a := range agents {
		if r.sending[a.Home] {
			continue
		}
		if again := r.not[a.Home]; now.Before(again) && again.Sub(now) <= lookEvery {
			wait = min(wait, again.Sub(now))
			continue
		}
		all, unread := List(a)
		left := lookEvery
		for _, p := range all {
			left = min(left, r.left(a, p))
		}
		if unread != nil || left > 0 {
			r.tell(a, unread)
		}
		if left > 0 {
			wait = min(wait, left)
			continue
		}
		r.send(ctx, a)
	}
	return wait
}

// left returns how long a prompt waits yet: until a time by the wall clock, or for the length
// of time that was said, whatever the clock is set to.
func (r *run) left(a *config.Agent, p Prompt) time.Duration {
	now := r.now()
	if p.In <= 0 {
		return p.At.Sub(now.Round(0))
	}
	r.waiting.Lock()
	defer r.waiting.Unlock()
	key := a.Home + "/" + p.ID
	if _, known := r.ends[key]; !known {
		r.ends[key] = deadline.On(p.At, now, p.In)
	}
	return deadline.Left(r.ends[key], now)
}

// send sends what is due of one agent, beside the others.
func (r *run) send(ctx context.Context, a *config.Agent) {
	r.sending[a.Home] = true
	r.senders.Go(func() {
		err := sendDue(ctx, a, func(p Prompt) bool { return r.left(a, p) <= 0 }, func(p Prompt) error { return r.SendLater(ctx, a, p) })
		select {
		case r.ended <- sent{a, err}:
		case <-ctx.Done():
		}
	})
}

// note takes in how it has ended.
func (r *run) note(ctx context.Context, s sent) {
	delete(r.sending, s.agent.Home)
	delete(r.not, s.agent.Home)
	if ctx.Err() != nil {
		return
	}
	if s.err != nil {
		r.not[s.agent.Home] = r.now().Round(0).Add(lookEvery)
	}
	r.tell(s.agent, s.err)
}

// tell tells the fleet why prompts of an agent could not be sent, or that none failed.
func (r *run) tell(a *config.Agent, err error) {
	if err == nil && !r.fails[a.Home] {
		return
	}
	r.fails[a.Home] = err != nil
	r.CannotSend(a, err)
}
