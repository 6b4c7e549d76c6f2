package proving

import (
	"cmp"
	"context"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// Forged returns what an agent's outbox calls done behind a mark although it has to
// be proven and is not: only somebody who has written the queue's files can have done
// that. It files it as dead letters, tells of it, and advances the mark. An entry that
// stands goes on: its record is told, ends nothing, and is not returned. What the queue
// has passed without an end is filed, too. After an error the mark is where it was.
//
// The mark is one of the session's beginning, and a is the definition that the session
// was started with: nobody had to prove what was done before, or without its until:.
func (d *Desk) Forged(ctx context.Context, a *config.Agent, key string, m *inbox.OutboxMark) (filed []inbox.Delivery, err error) {
	book, err := d.Book(key)
	if err != nil {
		return nil, err
	}
	next := *m
	done, err := queue.DoneSince(ctx, a, &next)
	if err != nil {
		return nil, err
	}
	filed, told, ended, err := d.fileAllForged(ctx, a, key, book, done)
	if err != nil {
		return nil, err
	}
	doubts := func(e inbox.Delivery) bool {
		_, forged, err := d.lacksProof(a, key, e)
		return forged || err != nil
	}
	if err := queue.Skipped(ctx, a, &next, ended, doubts); err != nil {
		return nil, err
	}
	if err := book.Forges(slices.Concat(told, filed)); err != nil {
		return nil, err
	}
	*m = next
	d.tellAllForged(a, book, told, filed)
	return filed, nil
}

// fileAllForged files those of an outbox's records that are forged. told are those whose
// entry goes on; ended are those whose entry has ended, filed ones included.
func (d *Desk) fileAllForged(ctx context.Context, a *config.Agent, key string, book *ledger.Book, done []inbox.Delivery) (filed, told, ended []inbox.Delivery, err error) {
	for _, e := range done {
		demand, forged, err := d.lacksProof(a, key, e)
		if err != nil {
			return nil, nil, nil, err
		}
		is := false
		if forged && e.DeliveryID != "" && !book.Differs(e) { // else it may be done: Settle sees to it
			is, err = d.fileForged(ctx, a, book, e, demand)
		}
		switch {
		case err != nil:
			return nil, nil, nil, err
		case is:
			filed, ended = append(filed, e), append(ended, e)
		case forged:
			told = append(told, e)
		default:
			ended = append(ended, e)
		}
	}
	return filed, told, ended, nil
}

// tellAllForged tells of forged records, and gives up what was demanded of those that are
// filed.
func (d *Desk) tellAllForged(a *config.Agent, book *ledger.Book, told, filed []inbox.Delivery) {
	for _, e := range told {
		why := "the outbox calls it done, and no check of it has passed; what is queued goes on"
		if book.Differs(e) {
			why = "the outbox has a record of it that is not that of its verdict"
		}
		d.tellForged(a, cmp.Or(e.DeliveryID, e.ID), why)
	}
	for _, e := range filed {
		d.tellForged(a, e.DeliveryID, "the outbox calls it done, and no check of it has passed")
		if err := ledger.GiveUp(d.opt.StateDir, a.Inbox, e.ID); err != nil {
			d.opt.Log.Warn(err.Error(), "agent", a.Name)
		}
	}
}

// fileForged files the entry of a record, by our own memory of its line and its text.
func (d *Desk) fileForged(ctx context.Context, a *config.Agent, book *ledger.Book, e inbox.Delivery, demand *ledger.Demand) (filed bool, err error) {
	if v := book.Course(e.DeliveryID).Verdict; v != nil {
		e.EntryID = v.Entry
	}
	text := ""
	known, err := ledger.TextOf(d.opt.StateDir, ledger.Text{ID: e.ID, Entry: e.EntryID, Inbox: a.Inbox})
	switch {
	case err != nil:
		return false, err
	case known != nil:
		text = known.Text
	case demand != nil:
		text = demand.Text
	}
	return queue.FileForged(ctx, a, e, text)
}

// lacksProof reports whether an agent's delivery has to be proven, and is not; demand is
// what is recorded for its id. A record without a delivery id is forged if its entry is
// demanded anything.
func (d *Desk) lacksProof(a *config.Agent, key string, e inbox.Delivery) (demand *ledger.Demand, forged bool, err error) {
	demand, err = ledger.DemandOf(d.opt.StateDir, a.Inbox, e.ID)
	if err != nil {
		return nil, false, err
	}
	book, err := d.Book(key)
	switch {
	case err != nil:
		return demand, false, err
	case book.Differs(e):
		return demand, true, nil
	case demand != nil:
		return demand, ledger.Lacks(demand, e), nil
	case a.Until == nil || e.DeliveryID == "":
		return nil, false, nil
	}
	return demand, !book.Passed(e.DeliveryID), nil
}
