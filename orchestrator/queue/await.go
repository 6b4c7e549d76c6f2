package queue

import (
	"cmp"
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
	given := ""
	if n := e.Entry.Attempts; n > 1 {
		given = fmt.Sprintf(" after it was handed over %d times", n)
	}
	if e.Entry.Cause != "" {
		given += " (" + e.Entry.Cause + ")"
	}
	return fmt.Sprintf("cannot get a reply from agent %q: the entry was given up: %s%s", e.Agent, e.Entry.Reason, given)
}

// Hint says where the entry is.
func (e *GivenUpError) Hint() string {
	return "heartbeat dead-letter " + e.Agent + " show " + cmp.Or(e.Entry.ID, e.Entry.DeliveryID)
}

// GoneError means that there is no record of an entry any more.
type GoneError struct{ Agent, ID string }

// Error says where it was searched for.
func (e *GoneError) Error() string {
	return fmt.Sprintf("cannot get a reply from agent %q: entry %q is neither queued nor in flight, and no reply or dead letter tells of it",
		e.Agent, e.ID)
}

// Hint says how that can happen.
func (e *GoneError) Hint() string {
	return "on-orphan: drop drops what was interrupted, and old replies are rotated away; heartbeat history " + e.Agent
}

// While a reply is awaited, the dead letters are read every deadLook, and every
// goneLook-th time the queue too. An entry is gone if it is missing twice: the
// first time it may have been on the way from one file to another.
const (
	deadLook = time.Second
	goneLook = 3
)

// Doubtful reports whether an agent's outbox record belongs to an entry that has to be proven
// and is not. nil: no record is doubtful.
type Doubtful func(a *config.Agent, d inbox.Delivery) bool

func (u Doubtful) counts(a *config.Agent) func(inbox.Delivery) bool {
	return func(d inbox.Delivery) bool { return u == nil || !u(a, d) }
}

// Await waits until the entry with an id is done, and returns its outbox record. Doubtful
// records do not count. The error is a *GivenUpError if the entry became a dead letter, a
// *GoneError if it was dropped or its record is too old to be kept, and the cause if ctx ends
// first.
func Await(ctx context.Context, a *config.Agent, id string, doubts Doubtful) (*inbox.Delivery, error) {
	q, err := Open(a)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	counts := doubts.counts(a)
	go watchDead(ctx, a, id, counts, cancel)
	return q.AwaitDelivery(ctx, id, counts)
}

// watchDead ends the wait when the entry appears among the dead letters. It uses a
// queue of its own: one queue serves one goroutine.
func watchDead(ctx context.Context, a *config.Agent, id string, counts func(inbox.Delivery) bool, cancel context.CancelCauseFunc) {
	q, err := Open(a)
	if err != nil {
		cancel(err)
		return
	}
	err = watchDeadIn(ctx, q, a.Name, id, counts)
	if err = errors.Join(err, q.Close()); err != nil {
		cancel(err)
	}
}

func watchDeadIn(ctx context.Context, q *inbox.Queue, agent, id string, counts func(inbox.Delivery) bool) error {
	tick := time.NewTicker(deadLook)
	defer tick.Stop()
	q.Within(ctx)
	var seen inbox.Mark
	for look, missed := 1, 0; ; look++ {
		for d, err := range q.DeadLettersFrom(&seen) {
			if errors.Is(err, inbox.ErrTooMuch) || ctx.Err() != nil {
				break // the reply may still come
			}
			if err != nil {
				return err
			}
			if d.ID == id && (d.Reason != inbox.Cancelled || !queuedAgain(ctx, q, id)) {
				return &GivenUpError{Agent: agent, Entry: d}
			}
		}
		if look%goneLook == 0 {
			// A queue that cannot be read may be repaired.
			if held, err := q.Holds(id); held || err != nil {
				missed = 0
			} else if missed++; missed == 2 {
				return gone(q, agent, id, counts)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// queuedAgain reports whether a cancelled entry is queued again: it becomes a dead letter for a
// moment when that is done.
func queuedAgain(ctx context.Context, q *inbox.Queue, id string) bool {
	select {
	case <-ctx.Done():
	case <-time.After(deadLook):
	}
	held, err := q.Holds(id)
	return held && err == nil
}

// gone returns a *GoneError for an entry, unless it has a reply that Await will find.
func gone(q *inbox.Queue, agent, id string, counts func(inbox.Delivery) bool) error {
	if _, err := q.FindDelivery(id, counts); !errors.Is(err, inbox.ErrNotFound) {
		return err
	}
	return &GoneError{Agent: agent, ID: id}
}
