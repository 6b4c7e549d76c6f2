package send

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/queue"
)

// waiter is who waits for the reply to a prompt; the zero value: nobody.
type waiter struct {
	await func(context.Context, awaited.Order) (known bool, err error)
	reply awaited.Reply
	known bool // somebody waited for it before
}

// awaits notes who gets the reply, before the prompt is accepted: none is without it. due
// is when it is sent, zero: now.
func awaits(ctx context.Context, a *config.Agent, asked Asked, due time.Time) (l inbox.Letter, w waiter, err error) {
	l = asked.Letter
	if asked.ReplyTo == "" {
		return l, w, nil
	}
	if l.ID == "" {
		l.ID = NewID()
	}
	w = waiter{await: asked.Await, reply: awaited.Reply{Agent: a.Name, ID: l.ID, Target: asked.ReplyTo, At: time.Now(), Due: due.UTC()}}
	w.known, err = w.await(ctx, awaited.Order{Reply: w.reply})
	return l, w, err
}

// stood reports whether the prompt that stood under the id has another text. Its reply is
// nobody's then; otherwise it is waited for, though the prompt was queued before.
func (w waiter) stood(ctx context.Context, a *config.Agent, l inbox.Letter) (differs bool, err error) {
	differs, _, err = queue.Differs(ctx, a, l.ID, l.Prompt)
	switch {
	case err != nil || w.await == nil:
		return differs, err
	case differs:
		return true, w.leaves(ctx)
	}
	w.reply.Before = true
	_, err = w.await(ctx, awaited.Order{Reply: w.reply})
	return false, err
}

// leaves forgets a waiter whose prompt was not accepted.
func (w waiter) leaves(ctx context.Context) error {
	if w.await == nil || w.known {
		return nil
	}
	_, err := w.await(context.WithoutCancel(ctx), awaited.Order{Reply: w.reply, Ends: true})
	return err
}
