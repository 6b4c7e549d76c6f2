package queue

import (
	"context"
	"errors"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// IDs returns the ids of what stands in an agent's queue: in flight, queued, and set aside.
func IDs(ctx context.Context, a *config.Agent) (ids []string, err error) {
	err = Read(ctx, a, func(q *inbox.Queue) error {
		ids, err = idsIn(q)
		return err
	})
	return ids, err
}

func idsIn(q *inbox.Queue) (ids []string, err error) {
	err = q.Standing(func(id, _ string) {
		if id != "" {
			ids = append(ids, id)
		}
	})
	return ids, err
}

// left are entries that do not stand in a queue any more. Of those that have ended, textless
// are lost together with their text.
type left struct{ ended, gone, textless []inbox.Sent }

// leftOf returns which of the given entries do not stand in a queue: those that have ended, by
// an outbox record or as a dead letter, and those of which nothing is left.
func leftOf(q *inbox.Queue, all []inbox.Sent) (l left, err error) {
	is := make(map[string]end, len(all)) // :: id → what has become of it; nothing: it stands
	for _, s := range all {
		is[s.ID] = end{}
	}
	standing, err := idsIn(q) // first, so that an entry that ends meanwhile is found where it went
	if err != nil {
		return l, err
	}
	for _, id := range standing {
		delete(is, id)
	}
	if err := endsIn(q, is); err != nil {
		return l, err
	}
	for _, s := range all {
		e, asked := is[s.ID]
		switch {
		case e.ended:
			l.ended = append(l.ended, s)
		case asked:
			l.gone = append(l.gone, s)
		}
		if e.textless {
			l.textless = append(l.textless, s)
		}
	}
	return l, nil
}

// end is what has become of an entry.
type end struct{ ended, textless bool }

// endsIn notes which entries, by id, have ended in a queue.
func endsIn(q *inbox.Queue, is map[string]end) error {
	if len(is) == 0 {
		return nil
	}
	note := func(id string, textless bool) {
		if e, asked := is[id]; asked {
			is[id] = end{true, e.textless || textless}
		}
	}
	for d, err := range q.Deliveries() {
		if err != nil {
			return err
		}
		note(d.ID, false)
	}
	for d, err := range q.DeadLetters() {
		if err != nil {
			return err
		}
		note(d.ID, d.Textless())
	}
	return nil
}

// Ended returns which of the given entries have left an agent's queue and are done or dead
// letters.
func Ended(ctx context.Context, a *config.Agent, all []inbox.Sent) ([]inbox.Sent, error) {
	var l left
	err := Read(ctx, a, func(q *inbox.Queue) (err error) {
		l, err = leftOf(q, all)
		return err
	})
	return l.ended, err
}

// FileLost files those of the given entries as dead letters, inbox.Lost, that have left an
// agent's queue and of which nothing is left. Those that the queue has filed without their text
// get it. It returns how many it has filed, and which have left the queue in whatever way. A
// queue that waits for a person's answer, or is not there, is left as it is.
func FileLost(ctx context.Context, a *config.Agent, all []inbox.Sent) (filed int, over []inbox.Sent, err error) {
	there := false
	err = Read(ctx, a, func(*inbox.Queue) error { there = true; return nil })
	if !there || err != nil {
		return 0, nil, err
	}
	err = locked(ctx, place(a), func(q *inbox.Held) error {
		if err := q.Settle(); err != nil { // it knows more of what it misses itself
			return err
		}
		l, err := leftOf(q.Queue, all)
		if err != nil {
			return err
		}
		filed, over = len(l.gone), append(l.ended, l.gone...)
		return errors.Join(q.Recall(l.textless...), q.FileGone(inbox.Lost, l.gone...))
	})
	if errors.Is(err, inbox.ErrNeedsOperator) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	return filed, over, nil
}
