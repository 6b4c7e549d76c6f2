package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// SetAside takes the entry in flight out of an agent's queue until a person answers. A session
// may live. The errors are those of inbox.Held.SetAside.
func SetAside(ctx context.Context, a *config.Agent, f *inbox.InFlight, now time.Time) error {
	err := locked(ctx, place(a), func(q *inbox.Held) error {
		_, err := q.SetAside(f.DeliveryID, f.Check, now)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot set a prompt of agent %q aside: %w", a.Name, err)
	}
	return nil
}

// KeepWaiting corrects the file of an agent's entries that are set aside (see
// inbox.Held.KeepWaiting). known, called with the hook lock held, returns what has to be in it.
func KeepWaiting(ctx context.Context, a *config.Agent, known func() ([]inbox.InFlight, error), done func(delivery string) bool) (r inbox.Reconciled, err error) {
	err = locked(ctx, place(a), func(q *inbox.Held) (err error) {
		want, err := known()
		if err == nil {
			r, err = q.KeepWaiting(want, done)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("cannot keep what waits of agent %q: %w", a.Name, err)
	}
	return r, err
}

// WaitsAside reports whether the prompt with an id is set aside.
func WaitsAside(a *config.Agent, id string) (is bool, err error) {
	err = Read(context.Background(), a, func(q *inbox.Queue) error {
		all, err := q.Waiting()
		is = slices.ContainsFunc(all, func(f inbox.InFlight) bool { return id != "" && f.ID == id })
		return err
	})
	return is, err
}

// BringBack puts a set-aside entry that has to be handed over again in flight, and returns it;
// nil if there is none, or another entry is in flight.
func BringBack(ctx context.Context, a *config.Agent) (f *inbox.InFlight, err error) {
	err = locked(ctx, place(a), func(q *inbox.Held) (err error) {
		f, err = q.BringBack()
		return err
	})
	if errors.Is(err, inbox.ErrInFlight) {
		return nil, nil
	}
	if err != nil {
		err = fmt.Errorf("cannot hand a prompt of agent %q over again: %w", a.Name, err)
	}
	return f, err
}
