package queue

import (
	"context"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// Became is what has become of an entry that was in flight: one of these, or, with none of
// them, it was dropped. (What the files say of many entries is Fates.)
type Became struct {
	Done   bool         // the outbox has it
	State  inbox.State  // it is in flight, or set aside, in this state; "": neither
	Queued bool         // it stands in the queue
	Dead   inbox.Reason // why it is a dead letter; "": it is none
}

// WhatBecame returns what has become of an entry of an agent, by its delivery id and its own
// id, or "". One that was cancelled and queued again has another delivery id.
func WhatBecame(ctx context.Context, a *config.Agent, delivery, id string) (b Became, err error) {
	err = Read(ctx, a, func(q *inbox.Queue) (err error) {
		if b.State, err = stateOf(q, delivery); err != nil || b.State != "" {
			return err
		}
		if b.Queued, err = q.Queued(delivery, id); err != nil || b.Queued {
			return err
		}
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			if d.DeliveryID == delivery {
				b.Dead = d.Reason
			}
		}
		if b.Dead != "" {
			return nil
		}
		for d, err := range q.Deliveries() {
			if err != nil {
				return err
			}
			b.Done = b.Done || d.DeliveryID == delivery
		}
		return nil
	})
	return b, err
}

// stateOf is the state of an entry that is in flight or set aside; "": it is neither.
func stateOf(q *inbox.Queue, delivery string) (inbox.State, error) {
	flight, err := q.Peek()
	if err != nil {
		return "", err
	}
	all, err := q.Waiting()
	if flight != nil {
		all = append(all, *flight)
	}
	for _, f := range all {
		if f.DeliveryID == delivery {
			return f.State, nil
		}
	}
	return "", err
}
