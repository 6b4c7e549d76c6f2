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

// Compared is what an agent's outbox calls done behind a mark.
type Compared struct {
	// Done are the deliveries that are done. Forged is true if the outbox has records of
	// others.
	Done   []inbox.Delivery
	Forged bool
	// Filed are those of them that are dead letters now.
	Filed []inbox.Delivery
}

// Forged returns what an agent's outbox calls done behind a mark, and what of it has to
// be proven and is not: only somebody who has written the queue's files can have done
// that. It files that as dead letters, tells of it, and advances the mark. An entry that
// stands goes on: its record is told, and ends nothing. What the queue has passed without
// an end is filed, too. After an error the mark is where it was.
//
// The mark is one of the session's beginning, and a is the definition that the session
// was started with: nobody had to prove what was done before, or without its until:.
func (d *Desk) Forged(ctx context.Context, a *config.Agent, key string, m *inbox.OutboxMark) (Compared, error) {
	book, err := d.Book(key)
	if err != nil {
		return Compared{}, err
	}
	next := *m
	all, err := queue.DoneSince(ctx, a, &next)
	if err != nil {
		return Compared{}, err
	}
	is, told, ended, err := d.fileAllForged(ctx, a, key, book, all)
	if err != nil {
		return Compared{}, err
	}
	doubts := func(e inbox.Delivery) bool {
		_, forged, err := d.lacksProof(a, key, e)
		return forged || err != nil
	}
	if err := queue.Skipped(ctx, a, &next, ended, doubts); err != nil {
		return Compared{}, err
	}
	if err := book.Forges(slices.Concat(told, is.Filed)); err != nil {
		return Compared{}, err
	}
	*m, is.Forged = next, len(told)+len(is.Filed) > 0
	d.tellAllForged(a, book, told, is.Filed)
	return is, nil
}

// fileAllForged files those of an outbox's records that are forged. told are those whose
// entry goes on; ended are those whose entry has ended, filed ones included.
func (d *Desk) fileAllForged(ctx context.Context, a *config.Agent, key string, book *ledger.Book, all []inbox.Delivery) (is Compared, told, ended []inbox.Delivery, err error) {
	for _, e := range all {
		demand, forged, err := d.lacksProof(a, key, e)
		if err != nil {
			return is, nil, nil, err
		}
		files := false
		if forged && e.DeliveryID != "" && !book.Differs(e) { // else it may be done: Settle handles it
			files, err = d.fileForged(ctx, a, book, e, demand)
		}
		switch {
		case err != nil:
			return is, nil, nil, err
		case files:
			is.Filed, ended = append(is.Filed, e), append(ended, e)
		case forged:
			told = append(told, e)
		default:
			is.Done, ended = append(is.Done, e), append(ended, e)
		}
	}
	return is, told, ended, nil
}

// tellAllForged tells of forged records, and gives up what was demanded of those that are
// filed.
func (d *Desk) tellAllForged(a *config.Agent, book *ledger.Book, told, filed []inbox.Delivery) {
	for _, e := range told {
		why := "the outbox calls it done, and no check of it has passed; what is queued goes on"
		if book.Differs(e) {
			why = "the outbox has a record of it that is not that of its verdict"
		}
		d.tellLie(a, cmp.Or(e.DeliveryID, e.ID), calledDone, why)
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
	known, err := ledger.TextOf(d.opt.StateDir, a.Inbox, e.ID)
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
