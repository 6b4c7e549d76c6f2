package session

import (
	"context"
	"time"

	"heartbeat/hook"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// If other Stop hooks run beside ours, a turn that we let end may continue. The
// entry is done when the client has demonstrably stopped.

// stopped reports whether it has, by its transcript. If the client has exited, the
// rest of a turn that was allowed to end is final too.
func (s *shim) stopped() bool {
	return s.record.Phase == hook.Settling && s.record.Stopped(&s.stops)
}

// settled finishes the entry whose turn is over, and decides what follows,
// unless a hook has spoken since the moment that was judged.
func (s *shim) settled(ctx context.Context, before moment) {
	s.dealWith(ctx, before, "acknowledge the entry", func(session *hook.Session, g *queue.Given) error {
		look := session.Look()
		look.Next = true
		steps := []wire.Step{look}
		if g != nil && g.Delivery == session.Record.Settles {
			steps = []wire.Step{session.Finishes(g, session.Record.Says(time.Now())), look}
		}
		answer, err := request(ctx, session, steps...)
		if err != nil && answer.Steps < len(steps)-1 {
			return err
		}
		if spoken(session.Record) == before {
			afterSettling(session.Record, err != nil || answer.Queued, time.Now())
		}
		return nil
	})
}

// afterSettling rules on a session whose turn is over and whose Stop hook does not
// wait: without a person, nothing can be handed to it any more.
func afterSettling(r *hook.Record, queued bool, now time.Time) {
	switch {
	case r.Ruling != nil:
	case r.Attached > 0:
		r.Enter(hook.Unattended, now)
		return
	case r.Gated() && (queued || r.Policy.Mode == hook.Persist):
		r.End(hook.EndReleased, "one entry for each session: "+hook.NameHooks(r.Gates)+" may make it continue", now)
	case queued && r.Policy.Context == hook.ContextEntry:
		r.End(hook.EndReleased, "one entry for each conversation", now)
	default:
		r.Drained(now)
	}
	r.Enter(hook.Ending, now)
}

// takeBack queues an entry again that our Stop hook handed over while another one
// stopped the client: the client is idle. That hook is remembered, so that from now
// on a session takes one entry.
func (s *shim) takeBack(ctx context.Context, by string, before moment) {
	s.dealWith(ctx, before, "take the entry back", func(session *hook.Session, g *queue.Given) error {
		if g != nil && g.State == queue.Offered && g.Handover.Via == queue.ViaStop {
			if _, err := request(ctx, session, wire.Step{Do: wire.Withdraw, At: wire.RefOf(&g.Entry)}); err != nil {
				return err
			}
			session.Rests()
		}
		now, r := time.Now(), session.Record
		r.AddGates([]string{by})
		r.End(hook.EndReleased, hook.NameHooks([]string{by})+" had the client stop where it was given the next prompt", now)
		r.Enter(hook.Ending, now)
		return nil
	})
}
