package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// GivenUpError means that an entry became a dead letter.
type GivenUpError struct {
	Agent string
	Entry inbox.DeadEntry
}

// Error names the reason.
func (e *GivenUpError) Error() string {
	return fmt.Sprintf("cannot get a reply from agent %q: the entry was given up: %s after %d attempts",
		e.Agent, e.Entry.Reason, max(e.Entry.Attempts, 1))
}

// Hint says where the entry stands.
func (e *GivenUpError) Hint() string { return "heartbeat dead-letter " + e.Agent + " show" }

// deadLook is how often the dead letters are looked at while a reply is
// awaited.
const deadLook = time.Second

// Await waits until the entry with an id is acknowledged and returns its
// record; a *GivenUpError when it became a dead letter. It returns the cause
// when ctx ends before.
func Await(ctx context.Context, a *config.Agent, id string) (*inbox.Delivery, error) {
	q, err := Open(a)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go watchDead(ctx, a, id, cancel)
	return q.AwaitDelivery(ctx, id)
}

// watchDead ends the wait when the entry turns up among the dead letters. It
// has a queue of its own: one serves one goroutine.
func watchDead(ctx context.Context, a *config.Agent, id string, cancel context.CancelCauseFunc) {
	q, err := Open(a)
	if err != nil {
		cancel(err)
		return
	}
	err = watchDeadIn(ctx, q, a.Name, id)
	if err = errors.Join(err, q.Close()); err != nil {
		cancel(err)
	}
}

func watchDeadIn(ctx context.Context, q *inbox.Queue, agent, id string) error {
	tick := time.NewTicker(deadLook)
	defer tick.Stop()
	for {
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			if d.ID == id {
				return &GivenUpError{Agent: agent, Entry: d}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
