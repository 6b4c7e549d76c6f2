package send

import (
	"context"
	"errors"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// At keeps a prompt for an agent until a time. A scheduler that runs then queues it, or
// the next one that is started, at once. Who gets the reply, and what it has to pass, is
// kept in the state directory: the agent can write where the prompt is.
func At(ctx context.Context, f *config.Fleet, a *config.Agent, asked Asked, at time.Time) (Sent, error) {
	s := Sent{Agent: a.Name, Inbox: a.Inbox, Urgent: asked.Urgent, ID: asked.ID, At: at, ReplyTo: asked.ReplyTo}
	if err := ready(f, a, asked); err != nil {
		return s, err
	}
	if s.ID == "" {
		s.ID = NewID()
	}
	asked.ID, asked.Idempotent, asked.Most, asked.Checked = s.ID, true, -1, asked.Until != nil
	if there, err := s.waitsForItsTime(ctx, a, asked); there || err != nil {
		return s, err
	}
	l := asked.Letter
	switch _, err := queue.Append(ctx, a, l); { // what the queue would refuse at that time is refused now
	case errors.Is(err, inbox.ErrDuplicate):
		s.Duplicate, s.At = true, time.Time{}
		_, w, err := awaits(ctx, a, asked, time.Time{})
		if err == nil {
			s.Differs, err = w.stood(ctx, a, l)
		}
		return s, err
	case !errors.Is(err, inbox.ErrFull): // it has room for none, and says nothing else against this one
		return s, err
	}
	_, w, err := awaits(ctx, a, asked, at)
	if err != nil {
		return s, err
	}
	ends, err := demands(f, a, l, asked.Until, at)
	if err != nil {
		return s, errors.Join(err, w.leaves(ctx))
	}
	kept, err := later.Put(ctx, a, later.Prompt{ID: s.ID, At: at, Text: l.Prompt, Urgent: l.Urgent, In: asked.In})
	if errors.Is(err, later.ErrExists) { // put there a moment ago
		if s.sameAs(kept, l); s.Differs {
			err = w.leaves(ctx)
		} else {
			err = nil
		}
		return s, errors.Join(err, ends(false))
	}
	if err != nil {
		return s, errors.Join(err, ends(false), w.leaves(ctx))
	}
	s.Running = lookAt(f, a, s.ID).Agent.State != status.Stopped
	return s, nil
}

// waitsForItsTime reports whether a prompt with the id of another one waits for its time:
// it was accepted, and counts as if it was queued.
func (s *Sent) waitsForItsTime(ctx context.Context, a *config.Agent, asked Asked) (bool, error) {
	if !asked.Idempotent || asked.ID == "" {
		return false, nil
	}
	before, err := later.Find(a, asked.ID)
	if before == nil || err != nil {
		return false, err
	}
	if s.sameAs(*before, asked.Letter); !s.Differs {
		_, _, err = awaits(ctx, a, asked, before.At)
	}
	return true, err
}

// sameAs says that the id of a letter is that of a prompt that waits for its time.
func (s *Sent) sameAs(before later.Prompt, l inbox.Letter) {
	s.ID, s.At, s.Duplicate = before.ID, before.At, true
	s.Differs = !queue.SameText(before.Text, l.Prompt)
}

// TakeBack takes back a prompt that waits for its time, and forgets who waits for the reply
// and what it had to pass. With later.ErrNone none waits. await is Asked.Await.
func TakeBack(ctx context.Context, f *config.Fleet, a *config.Agent, id string, await func(context.Context, awaited.Order) (bool, error)) error {
	if err := later.Cancel(ctx, a, id); err != nil {
		return err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return err
	}
	all, err := store.Ask(ctx, dir, awaited.All)
	for _, r := range all {
		if r.Agent == a.Name && r.ID == id {
			_, failed := await(ctx, awaited.Order{Reply: r, Ends: true})
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, ledger.DropDemand(dir, a.Inbox, id))
}
