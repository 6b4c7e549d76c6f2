package proving

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// queuedWithin is the longest time between recording what an entry has to pass and queueing
// it; after that the entry was refused.
const queuedWithin = time.Minute

// Settle lets go of what was demanded of entries that are no more: those that are
// proven, and dead letters that somebody has deleted. An entry that has left the queue
// in no other way, without a verdict, is filed with its text: as lost if one of our senders
// has queued it, else as forged. It returns how many dead letters those are.
func (d *Desk) Settle(ctx context.Context, a *config.Agent) (forged int, err error) {
	forged, err = d.vanished(ctx, a)
	if err != nil {
		return forged, err
	}
	all, err := ledger.Demands(d.opt.StateDir, a.Inbox)
	all = slices.DeleteFunc(all, func(demand ledger.Demand) bool { return toCome(a, &demand) }) // before the queue is read: it may go there
	if len(all) == 0 || err != nil {
		return forged, err
	}
	texts := make(map[string]string, len(all))
	for i := range all {
		texts[all[i].ID] = all[i].Text
	}
	fates, err := queue.Fates(ctx, a, texts)
	if err != nil {
		return forged, err
	}
	for i := range all {
		gone, err := d.settle(ctx, a, &all[i], fates[all[i].ID])
		if gone {
			forged++
		}
		if err != nil {
			return forged, err
		}
	}
	return forged, nil
}

// settle does that for one demand; forged is true if its entry is gone without a
// verdict.
func (d *Desk) settle(ctx context.Context, a *config.Agent, demand *ledger.Demand, is queue.Fate) (forged bool, err error) {
	drop := func() error { return ledger.DropDemand(d.opt.StateDir, a.Inbox, demand.ID) }
	passed := demand.Nothing && len(is.Done) > 0 || demand.Passed != "" && slices.Contains(is.Done, demand.Passed)
	switch {
	case is.Stands && (demand.GivenUp || !demand.Queued): // it is queued again, or its sender was killed
		return false, ledger.Stands(d.opt.StateDir, a.Inbox, demand.ID)
	case is.Stands:
		return false, nil
	case is.Dead:
		return false, ledger.GiveUp(d.opt.StateDir, a.Inbox, demand.ID)
	case demand.GivenUp, passed:
		return false, drop()
	case time.Since(demand.At).Abs() < queuedWithin:
		return false, nil
	case demand.Nothing:
		return false, drop()
	case !demand.Queued && len(is.Done) == 0:
		d.opt.Note(journal.Event{Agent: a.Name, Kind: journal.NotQueued, Entry: demand.ID, Reason: "its sender ended before it was in the inbox"})
		return false, drop()
	}
	if err := queue.FileGone(ctx, a, inbox.Sent{ID: demand.ID, Prompt: demand.Text}); err != nil {
		return false, err
	}
	d.tellForged(a, demand.ID, "it has left the queue, and no check of it has passed")
	return true, ledger.GiveUp(d.opt.StateDir, a.Inbox, demand.ID)
}

const calledDone = "an entry is not proven, and somebody calls it done"

// tellForged tells of an entry that is a dead letter because of what somebody has written.
func (d *Desk) tellForged(a *config.Agent, entry, why string) {
	d.opt.Note(journal.Event{Agent: a.Name, Kind: journal.Forged, Entry: entry, Verdict: string(inbox.Forged), Reason: foreign.Text(why)})
	d.opt.Log.Error(calledDone, "agent", a.Name, "entry", entry, "why", why)
}

// tellLie tells what somebody has written into an agent's files.
func (d *Desk) tellLie(a *config.Agent, entry, what, why string) {
	d.opt.Note(journal.Event{Agent: a.Name, Kind: journal.Forged, Entry: entry, Reason: foreign.Text(why)})
	d.opt.Log.Error(what, "agent", a.Name, "entry", entry, "why", why)
}

// Forgets drops what is kept of an entry that its policy has dropped.
func (d *Desk) Forgets(a *config.Agent, f *inbox.InFlight) {
	err := errors.Join(ledger.DropDemand(d.opt.StateDir, a.Inbox, f.ID), ledger.DropTexts(d.opt.StateDir, a.Inbox, f.ID))
	if err != nil {
		d.opt.Log.Warn(err.Error(), "agent", a.Name)
	}
}

// Marks keeps, as long as a session lives, how far its queue was compared, where something
// has to be proven there; nil: it has ended.
func (d *Desk) Marks(a *config.Agent, key string, m *inbox.OutboxMark) error {
	if m != nil && a.Until == nil {
		if all, err := ledger.Demands(d.opt.StateDir, a.Inbox); len(all) == 0 {
			return err
		}
	}
	book, err := d.Book(key)
	if err != nil {
		return err
	}
	if m != nil {
		kept := *m
		m = &kept
	}
	return book.Marks(m)
}

// Left compares what was left by a session whose scheduler was killed, as Forged and Settle
// do for one that ends. The book says whether everything had to be proven when the session
// began: since then the file may have gained an until:, or lost it. What was done without a
// check because the file had lost it has a verdict, too.
func (d *Desk) Left(ctx context.Context, a *config.Agent, key string) (forged int, err error) {
	book, err := d.Book(key)
	if err != nil {
		return 0, err
	}
	if m := book.Mark(); m != nil {
		as := *a
		if as.Until = nil; book.Demands() {
			as.Until = cmp.Or(a.Until, &config.Until{})
		}
		told, err := d.Forged(ctx, &as, key, m)
		if err == nil {
			err = book.Marks(nil)
		}
		if forged = len(told.Filed); err != nil {
			return forged, err
		}
	}
	more, err := d.Settle(ctx, a)
	return forged + more, err
}
