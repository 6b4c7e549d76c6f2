package entries

import (
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// Adopted is an entry of a queue that was kept elsewhere, with all that is known of it there. Its
// Handover is one if it has a number.
type Adopted struct {
	New
	Shown    queue.Shown
	Reply    *queue.Reply // nil: nothing is known
	Verdicts []Verdict
}

// Adopt is InsertAll for entries of a queue that was kept elsewhere.
func Adopt(c *store.Change, agent string, all []Adopted) error {
	fresh := make([]New, len(all))
	for i := range all {
		fresh[i] = all[i].New
	}
	if err := InsertAll(c, agent, fresh); err != nil {
		return err
	}
	for i := range all {
		all[i].Entry = fresh[i].Entry
		if err := all[i].keep(c); err != nil {
			return err
		}
	}
	return nil
}

// keep adds the other rows of an entry.
func (a *Adopted) keep(c *store.Change) error {
	if a.Handover.N > 0 {
		if err := beginHandover(c, a.Entry); err != nil {
			return err
		}
		if err := a.endHandover(c); err != nil {
			return err
		}
	}
	if a.Shown != (queue.Shown{}) {
		if err := writeShown(c, a.Key, a.Shown); err != nil {
			return err
		}
	}
	for _, v := range a.Verdicts {
		if err := writeVerdict(c, a.Key, v); err != nil {
			return err
		}
	}
	if a.Reply == nil {
		return nil
	}
	return writeReply(c, a.Key, *a.Reply)
}

// endHandover records how the last hand-over was over, as far as that is known.
func (a *Adopted) endHandover(c *store.Change) error {
	at, outcome := a.Handover.At, string(a.State)
	switch {
	case a.State.IsInSession():
		return nil
	case a.State.HasEnded():
		at = a.Ended
	case a.State == queue.Queued && a.Lane != queue.Returning:
		outcome = "given-again"
	default: // its check is over, or awaited
		if outcome = string(queue.Checking); a.Reply != nil {
			at = a.Reply.At
		}
	}
	return endHandover(c, a.Entry, outcome, at)
}

// ID is one that a sender gave, with when it was accepted.
type ID struct {
	ID string
	At time.Time
}

// RememberIDs remembers ids whose entries are not kept, the oldest first: whatever comes with one
// of them is a duplicate. One that is known stays as it is.
func RememberIDs(c *store.Change, agent string, ids []ID) error {
	if len(ids) == 0 {
		return nil
	}
	last, err := places(c, agent, len(ids))
	if err != nil {
		return err
	}
	for i, id := range ids {
		if _, err := c.Do(`INSERT INTO ids (agent, id, seq, at) VALUES ($1, $2, $3, $4) ON CONFLICT (agent, id) DO NOTHING`,
			agent, id.ID, last-int64(len(ids)-1-i), store.Millis(id.At)); err != nil {
			return err
		}
	}
	return nil
}

// IsKnown reports whether an agent has an entry with a delivery id.
func IsKnown(v *store.View, agent, delivery string) (bool, error) {
	return v.One(`SELECT seq FROM entries WHERE agent = $1 AND delivery = $2`, []any{agent, delivery}, new(int64))
}

// LastOf returns the last number that was given in an agent's queue; 0: it has none.
func LastOf(v *store.View, agent string) (seq int64, err error) {
	_, err = v.One(`SELECT seq FROM queues WHERE agent = $1`, []any{agent}, &seq)
	return seq, err
}
