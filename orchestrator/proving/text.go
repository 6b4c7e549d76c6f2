package proving

import (
	"cmp"
	"context"
	"errors"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// mostSeen is how many entries of one queue are remembered that others than our own
// senders have written: the agent can write any number of them.
const mostSeen = 10_000

// Sent remembers what an entry says that was queued just now, if it may have to be proven:
// its sender knows that, whatever its line says later.
func (d *Desk) Sent(a *config.Agent, l inbox.Letter) {
	if a.Until == nil && !l.Checked {
		return
	}
	if demand, err := ledger.DemandOf(d.opt.StateDir, a.Inbox, l.ID); err == nil && demand != nil && demand.Nothing {
		return
	}
	d.keepText(a, ledger.Text{ID: l.ID, Inbox: a.Inbox, Text: l.Prompt})
}

// keepText records a text, or logs why it cannot: the look before the next session reads
// it in the inbox.
func (d *Desk) keepText(a *config.Agent, t ledger.Text) {
	if err := ledger.KeepText(d.opt.StateDir, t); err != nil {
		d.opt.Log.Warn(err.Error(), "agent", a.Name)
	}
}

// Sees remembers what the entries in an agent's queue say that nobody has told of: lines
// that others have written, for example. If something that was known is nowhere, what is
// new may be written over it, and is not remembered.
func (d *Desk) Sees(ctx context.Context, a *config.Agent, key string) error {
	if a.Until == nil {
		return nil
	}
	standing, err := queue.Texts(ctx, a)
	if len(standing) == 0 || err != nil {
		return err
	}
	var anew []ledger.Text
	for _, s := range standing[:min(len(standing), mostSeen)] {
		t := textOf(a, s)
		known, err := ledger.TextOf(d.opt.StateDir, t)
		if err != nil {
			return err
		}
		demand, err := ledger.DemandOf(d.opt.StateDir, a.Inbox, s.ID)
		if err != nil {
			return err
		}
		if known == nil && (demand == nil || !demand.Nothing) {
			anew = append(anew, t)
		}
	}
	if len(anew) == 0 {
		return nil
	}
	if gone, err := d.gone(ctx, a, key); len(gone) > 0 || err != nil {
		return err
	}
	for _, t := range anew {
		if err := ledger.KeepText(d.opt.StateDir, t); err != nil {
			return err
		}
	}
	return nil
}

func textOf(a *config.Agent, s queue.Text) ledger.Text {
	t := ledger.Text{ID: s.ID, Inbox: a.Inbox, Text: s.Prompt}
	if s.ID == "" {
		t.Entry = s.Entry
	}
	return t
}

// textOfFlight is what the record of an entry in flight says.
func textOfFlight(a *config.Agent, f *inbox.InFlight) ledger.Text {
	return textOf(a, queue.Text{ID: f.ID, Entry: f.EntryID, Prompt: f.Prompt()})
}

// compareText compares what a record says with what was queued: sent is what was queued
// with its id, if that is something else. replaces is true for one that nobody has queued,
// while another one that was is nowhere: it was written over that.
func (d *Desk) compareText(ctx context.Context, a *config.Agent, key string, f *inbox.InFlight) (sent *ledger.Text, replaces bool, err error) {
	now := textOfFlight(a, f)
	known, err := ledger.TextOf(d.opt.StateDir, now)
	switch {
	case err != nil:
		return nil, false, err
	case known == nil:
		gone, err := d.gone(ctx, a, key)
		return nil, len(gone) > 0, err
	case known.ID != "" && !queue.SameText(known.Text, now.Text):
		return known, false, nil
	}
	return nil, false, nil
}

// gone returns what was queued in an agent's inbox and is nowhere, although it has not
// ended. What has ended is forgotten.
func (d *Desk) gone(ctx context.Context, a *config.Agent, key string) ([]queue.Text, error) {
	all, err := d.texts(a)
	if len(all) == 0 || err != nil {
		return nil, err
	}
	book, err := d.Book(key)
	if err != nil {
		return nil, err
	}
	gone, ended, err := queue.Gone(ctx, a, all, func(done inbox.Delivery) bool { return !book.Demands() || book.Passed(done.DeliveryID) })
	return gone, errors.Join(err, d.forget(a, ended))
}

func (d *Desk) texts(a *config.Agent) (all []queue.Text, err error) {
	known, err := ledger.Texts(d.opt.StateDir, a.Inbox)
	for _, t := range known {
		all = append(all, queue.Text{ID: t.ID, Entry: t.Entry, Prompt: t.Text})
	}
	return all, err
}

func (d *Desk) forget(a *config.Agent, all []queue.Text) (err error) {
	for _, t := range all {
		err = errors.Join(err, ledger.DropText(d.opt.StateDir, textOf(a, t)))
	}
	return err
}

// fileGone tells of what was queued and is nowhere, and files it with its text. It returns
// how many those are.
func (d *Desk) fileGone(ctx context.Context, a *config.Agent, key string) (forged int, err error) {
	gone, err := d.gone(ctx, a, key)
	for _, t := range gone {
		if err := queue.FileGone(ctx, a, t.ID, t.Prompt); err != nil {
			return forged, err
		}
		forged++
		d.tellForged(a, cmp.Or(t.ID, t.Entry), "its line says something else now, or is gone, and no check of it has passed")
		err = errors.Join(err, d.forget(a, []queue.Text{t}), ledger.GiveUp(d.opt.StateDir, a.Inbox, t.ID))
	}
	return forged, err
}

// Ended forgets what the dead letters of an agent's queue say. Whoever queues them again,
// or deletes them, calls it before.
func (d *Desk) Ended(ctx context.Context, a *config.Agent) error {
	all, err := d.texts(a)
	if len(all) == 0 || err != nil {
		return err
	}
	_, ended, err := queue.Gone(ctx, a, all, func(inbox.Delivery) bool { return false })
	return errors.Join(err, d.forget(a, ended))
}

// textEnds forgets what the entry of an applied verdict says. Of a forged one it is what
// was sent, if that is known: else nobody knows which it was.
func (r *run) textEnds(s subject, v *ledger.Verdict) error {
	t := textOfFlight(s.agent, s.flight)
	switch {
	case !v.Passed && v.GiveUp == "", v.GiveUp == inbox.Forged && s.sent == nil:
		return nil
	case s.sent != nil:
		t = *s.sent
	}
	return ledger.DropText(r.opt.StateDir, t)
}
