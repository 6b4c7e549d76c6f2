package send

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
)

// waiter is who waits for the reply to a prompt; the zero value: nobody.
type waiter struct {
	dir   string
	reply awaited.Reply
	known bool // somebody waited for it before
}

// awaits notes who gets the reply, before the prompt is accepted: none is without it. due
// is when it is sent, zero: now.
func awaits(f *config.Fleet, a *config.Agent, asked Asked, due time.Time) (l inbox.Letter, w waiter, err error) {
	l = asked.Letter
	if asked.ReplyTo == "" {
		return l, w, nil
	}
	if l.ID == "" {
		l.ID = NewID()
	}
	if w.dir, err = owner.Claim(f); err != nil {
		return l, w, err
	}
	w.reply = awaited.Reply{Agent: a.Name, ID: l.ID, Target: asked.ReplyTo, At: time.Now(), Due: due.UTC()}
	w.known = awaited.Waits(w.dir, w.reply)
	return l, w, awaited.Add(w.dir, w.reply)
}

// stood reports whether the prompt that stood under the id has another text. Its reply is
// nobody's then; otherwise it is waited for, though the prompt was queued before.
func (w waiter) stood(ctx context.Context, a *config.Agent, l inbox.Letter) (differs bool, err error) {
	differs, _, err = queue.Differs(ctx, a, l.ID, l.Prompt)
	switch {
	case err != nil || w.dir == "":
		return differs, err
	case differs:
		return true, w.leaves()
	}
	w.reply.Before = true
	return false, awaited.Add(w.dir, w.reply)
}

// leaves forgets a waiter whose prompt was not accepted.
func (w waiter) leaves() error {
	if w.dir == "" || w.known {
		return nil
	}
	return awaited.Remove(w.dir, w.reply)
}
