package session

import (
	"context"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
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
	s.dealWith(ctx, before, "acknowledge the entry", func(session *hook.Session, f *inbox.InFlight) error {
		if f != nil && f.DeliveryID == session.Record.Settles {
			if err := s.acknowledge(session, f); err != nil {
				return err
			}
		}
		d, err := session.Depth(countBytes)
		afterSettling(session.Record, err != nil || d.Entries > 0, time.Now())
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
	s.dealWith(ctx, before, "take the entry back", func(session *hook.Session, f *inbox.InFlight) error {
		if f != nil && f.State == inbox.Offered && f.Via == inbox.ViaStop {
			if err := session.Withdraw(); err != nil {
				return err
			}
		}
		now, r := time.Now(), session.Record
		r.AddGates([]string{by})
		r.End(hook.EndReleased, hook.NameHooks([]string{by})+" had the client stop where it was given the next prompt", now)
		r.Enter(hook.Ending, now)
		return nil
	})
}
