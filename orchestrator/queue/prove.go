package queue

import (
	"context"
	"fmt"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// Apply carries out what was decided about the entry in flight that is being
// checked; a session may live. The error matches inbox.ErrStale if another check is
// awaited, or none.
func Apply(ctx context.Context, a *config.Agent, v inbox.Verdict) error {
	err := locked(ctx, place(a), func(q *inbox.Held) error {
		_, err := q.Verdict(v)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot apply a verdict for agent %q: %w", a.Name, err)
	}
	return nil
}

// GivenUp reports whether an agent's entry is a dead letter.
func GivenUp(a *config.Agent, delivery string) (given bool, err error) {
	err = Read(context.Background(), a, func(q *inbox.Queue) (err error) {
		given, err = q.GivenUp(delivery)
		return err
	})
	return given, err
}

// EndOfReplies is the mark after the last reply of an agent.
func EndOfReplies(a *config.Agent) (end inbox.OutboxMark) {
	_ = Read(context.Background(), a, func(q *inbox.Queue) error { end = q.EndOfDeliveries(); return nil })
	return end
}

// DoneSince returns the records in an agent's outbox after a mark, and advances the mark.
func DoneSince(ctx context.Context, a *config.Agent, m *inbox.OutboxMark) (done []inbox.Delivery, err error) {
	err = Read(ctx, a, func(q *inbox.Queue) error {
		for d, err := range q.DeliveriesFrom(m) {
			if err != nil {
				return err
			}
			done = append(done, d)
		}
		return nil
	})
	return done, err
}

// FileForged files an unproven entry with a record in the outbox as a dead letter, with the prompt
// as it was sent if the entry's line is gone. An entry that is still queued or in flight is not
// filed.
func FileForged(ctx context.Context, a *config.Agent, d inbox.Delivery, prompt string) (filed bool, err error) {
	err = locked(ctx, place(a), func(q *inbox.Held) error {
		filed, err = q.FileForged(d, prompt)
		return err
	})
	return filed, err
}

// Skipped files the entries that the cursor of an agent's queue has passed since a mark although
// they were not ended, and advances the mark. done are the outbox records after the mark that
// count; doubts reports which other records do not count.
func Skipped(ctx context.Context, a *config.Agent, m *inbox.OutboxMark, done []inbox.Delivery, doubts func(inbox.Delivery) bool) error {
	var gap inbox.Gap
	err := Read(ctx, a, func(q *inbox.Queue) (err error) {
		gap, err = q.Skipped(m, done, doubts)
		if err == nil && gap.Nothing() {
			m.Moves(gap)
		}
		return err
	})
	if err == nil && !gap.Nothing() {
		err = locked(ctx, place(a), func(q *inbox.Held) error { return q.FileSkipped(m, gap) })
	}
	if err != nil {
		return fmt.Errorf("cannot tell what the queue of agent %q has passed: %w", a.Name, err)
	}
	return nil
}

// FileGone files an entry as forged that has left the queue without a verdict.
func FileGone(ctx context.Context, a *config.Agent, s inbox.Sent) error {
	return locked(ctx, place(a), func(q *inbox.Held) error { return q.FileGone(inbox.Forged, s) })
}

// Stands reports whether an entry with an id is queued or in flight.
func Stands(a *config.Agent, id string) (stands bool, err error) {
	err = Read(context.Background(), a, func(q *inbox.Queue) (err error) {
		stands, err = q.Holds(id)
		return err
	})
	return stands, err
}

// Fate is what the files of a queue say about an entry.
type Fate struct {
	Stands bool     // it is queued or in flight
	Dead   bool     // it is a dead letter
	Done   []string // the delivery ids by which the outbox calls it done
}

// SameText reports whether a prompt is the one that was sent, as a line in the inbox keeps it.
func SameText(a, b string) bool { return cleanText(a) == cleanText(b) }

func cleanText(s string) string { return strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD")) }

// Fates returns, by id, what an agent's queue says about entries. texts are their prompts by id:
// an entry that is queued with its prompt under another id stands, too.
func Fates(ctx context.Context, a *config.Agent, texts map[string]string) (map[string]Fate, error) {
	fates, byText := make(map[string]Fate, len(texts)), map[string]string{}
	for id, text := range texts {
		fates[id] = Fate{}
		if text != "" {
			byText[cleanText(text)] = id
		}
	}
	set := func(id string, as func(*Fate)) {
		if f, asked := fates[id]; asked {
			as(&f)
			fates[id] = f
		}
	}
	err := Read(ctx, a, func(q *inbox.Queue) error {
		err := q.Standing(func(id, prompt string) { // first, so that an entry that ends meanwhile is found where it went
			if _, asked := fates[id]; !asked {
				id = byText[cleanText(prompt)]
			}
			set(id, func(f *Fate) { f.Stands = true })
		})
		if err != nil {
			return err
		}
		for d, err := range q.Deliveries() {
			if err != nil {
				return err
			}
			set(d.ID, func(f *Fate) { f.Done = append(f.Done, d.DeliveryID) })
		}
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			set(d.ID, func(f *Fate) { f.Dead = true })
		}
		return nil
	})
	return fates, err
}
