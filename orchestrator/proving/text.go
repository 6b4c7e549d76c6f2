package proving

import (
	"context"
	"errors"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// Sent remembers what entries say that were queued just now (ledger.Queued).
func (d *Desk) Sent(a *config.Agent, letters ...inbox.Letter) {
	if err := ledger.Queued(d.opt.StateDir, a, letters...); err != nil {
		d.opt.Log.Warn(err.Error(), "agent", a.Name)
	}
}

// compareText compares what a record says with what was queued with its id, and returns
// that if it is something else; nil: it is the same, or nobody knows.
func (d *Desk) compareText(a *config.Agent, f *inbox.InFlight) (sent *ledger.Text, err error) {
	known, err := ledger.TextOf(d.opt.StateDir, a.Inbox, f.ID)
	if err != nil || known == nil || queue.SameText(known.Text, f.Prompt()) {
		return nil, err
	}
	return known, nil
}

// seen is what a queue was like in which nothing that is remembered was missing.
type seen struct {
	files queue.Trail
	texts ledger.Texts
}

// vanished files what was queued in an agent's inbox and is nowhere, although it has not
// ended, and forgets it, and what has ended. It returns how many were filed. If everything
// has to be proven, nothing is missing in a queue whose files are as before: what a verdict
// ends is forgotten, and what else ends is in them.
func (d *Desk) vanished(ctx context.Context, a *config.Agent) (filed int, err error) {
	now := seen{files: queue.TrailOf(a)} // before the queue is read
	before, ok := d.seen.Load(a.Inbox)
	same := ok && a.Until != nil && before.(seen).files.Same(now.files)
	if same && before.(seen).texts.Still() {
		return 0, nil
	}
	if now.texts, err = ledger.TextsOf(d.opt.StateDir, a.Inbox); now.texts.Len() == 0 || err != nil {
		return 0, err
	}
	if same && now.texts.In(before.(seen).texts) {
		return 0, nil
	}
	all, err := d.missing(ctx, a, now.texts)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		d.seen.Store(a.Inbox, now)
		return 0, nil
	}
	filed, over, err := queue.FileLost(ctx, a, all)
	if filed > 0 {
		d.opt.Log.Warn("prompts have left the queue without a verdict; they are dead letters", "agent", a.Name, "prompts", filed)
	}
	return filed, errors.Join(err, d.forget(a, over))
}

// missing returns those of the remembered entries that do not stand in an agent's queue.
func (d *Desk) missing(ctx context.Context, a *config.Agent, texts ledger.Texts) (all []inbox.Sent, err error) {
	ids, err := queue.IDs(ctx, a)
	if errors.Is(err, inbox.ErrNeedsOperator) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := texts.Without(ids).Load()
	for _, t := range known {
		all = append(all, inbox.Sent{ID: t.ID, Prompt: t.Text})
	}
	return all, err
}

func (d *Desk) forget(a *config.Agent, all []inbox.Sent) error {
	ids := make([]string, len(all))
	for i, s := range all {
		ids[i] = s.ID
	}
	return ledger.DropTexts(d.opt.StateDir, a.Inbox, ids...)
}

// Ended forgets what entries of an agent's queue say that are dead letters or done. Whoever
// deletes dead letters calls it before.
func (d *Desk) Ended(ctx context.Context, a *config.Agent) error {
	return d.letGo(ctx, a, queue.Ended)
}

// MovedOn forgets what entries say that do not stand in an agent's queue: a person has said
// where it continues, and with that, that the others are not to come.
func (d *Desk) MovedOn(ctx context.Context, a *config.Agent) error {
	return d.letGo(ctx, a, func(_ context.Context, _ *config.Agent, all []inbox.Sent) ([]inbox.Sent, error) { return all, nil })
}

func (d *Desk) letGo(ctx context.Context, a *config.Agent, which func(context.Context, *config.Agent, []inbox.Sent) ([]inbox.Sent, error)) error {
	texts, err := ledger.TextsOf(d.opt.StateDir, a.Inbox)
	if texts.Len() == 0 || err != nil {
		return err
	}
	all, err := d.missing(ctx, a, texts)
	if len(all) == 0 || err != nil {
		return err
	}
	over, err := which(ctx, a, all)
	return errors.Join(err, d.forget(a, over))
}

// textEnds forgets what the entry of an applied verdict says. Of a forged one it is what
// was sent, if that is known: else nobody knows which it was.
func (r *run) textEnds(s subject, v *ledger.Verdict) error {
	id := s.flight.ID
	switch {
	case !v.Passed && v.GiveUp == "", v.GiveUp == inbox.Forged && s.sent == nil:
		return nil
	case s.sent != nil:
		id = s.sent.ID
	}
	return ledger.DropTexts(r.opt.StateDir, s.agent.Inbox, id)
}
