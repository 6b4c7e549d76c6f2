package orchestrator

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// check begins the check of a member's entry in flight, if one is to begin.
func (s *Scheduler) check(m *member) {
	if !s.fleet.works() || m.Removed() && m.live == nil || !m.BeginCheck() {
		return
	}
	select {
	case <-m.wake: // meant for an earlier one
	default:
	}
	ctx, cancel := context.WithCancel(s.work)
	m.voidCheck = cancel
	s.wg.Go(func() {
		defer cancel()
		s.prove(ctx, m)
	})
}

// sameValue reports whether two pointers are to the same value, or both to none.
func sameValue[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// checkChanges takes what the live session says of its check: another one is to be
// made, or it goes on with its work, and what runs answers for nothing.
func (m *member) checkChanges(now *session.Checking) {
	if m.voidCheck != nil {
		m.voidCheck()
	}
	if now != nil {
		m.ToCheck()
	}
}

// prove has the entry in flight of a member checked, with or without a session.
func (s *Scheduler) prove(ctx context.Context, m *member) {
	applied := s.desk.Prove(ctx, proving.Case{
		Key: m.key, Wake: m.wake,
		Agent: func() *config.Agent {
			s.mu.Lock()
			defer s.mu.Unlock()
			return m.Declared() // what has to be passed follows the file at once
		},
		Worked: func() time.Duration {
			s.mu.Lock()
			defer s.mu.Unlock()
			return m.Worked(time.Now())
		},
		Conversation: s.conversationOf(m),
		Aside:        func(delivery string) { s.setAside(m, delivery) },
		Judged: func() {
			s.happened(m, m.Judged)
			s.consent.LookIfOpen(ctx)
		},
		Tell: func(p status.Proof) { s.happened(m, func(time.Time) { m.Proving(p) }) },
	})
	s.happened(m, func(now time.Time) {
		for _, v := range applied {
			switch {
			case v.Passed:
				m.Proven()
				s.fleet.hasDone(m, now)
			case v.GiveUp != "":
				m.DeadLettered()
			}
		}
		if s.fleet.works() {
			m.CheckEnded()
		}
	})
}

// wakeCheck has a check that waits tried at once.
func (m *member) wakeCheck() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// handedOver remembers what the session was given, before it can have worked on it for
// long.
func (c course) handedOver() {
	if err := c.desk.HandedOver(c.def, c.m.key); err != nil {
		c.log.Warn("cannot remember what was handed over", "agent", c.m.Name, "err", err)
	}
}

// compare looks for what the files of the session's queue call done although it is
// not proven.
func (c course) compare(m *inbox.OutboxMark) {
	forged, err := c.desk.Forged(context.Background(), c.def, c.m.key, m)
	if err != nil {
		c.log.Warn("cannot compare what is called done with what is proven", "agent", c.m.Name, "err", err)
	}
	if err == nil && len(forged) > 0 {
		c.happened(c.m, func(time.Time) { c.m.DeadLettered() })
	}
}

// keeps has the mark outlive this scheduler.
func (c course) keeps(m *inbox.OutboxMark) {
	if err := c.desk.Marks(c.def, c.m.key, m); err != nil {
		c.log.Warn("cannot keep how far a queue was compared with what is proven", "agent", c.m.Name, "err", err)
	}
}

// settles compares once more when a session has ended, and what is demanded of its
// queue's entries.
func (c course) settles(m *inbox.OutboxMark) {
	c.compare(m)
	c.keeps(nil)
	forged, err := c.desk.Settle(context.Background(), c.def)
	if err != nil {
		c.log.Warn("cannot tell what has become of what has to be proven", "agent", c.m.Name, "err", err)
	}
	if forged > 0 {
		c.happened(c.m, func(time.Time) { c.m.DeadLettered() })
	}
}

// leftToProve takes what is in flight without a session: it is to be checked, or
// goes on in a session.
func (s *Scheduler) leftToProve(m *member, outcome inbox.Outcome, flight *inbox.InFlight) {
	s.log.Info("an entry is not proven yet", "agent", m.Name, "entry", flight.DeliveryID, "iteration", flight.Iteration, "state", outcome)
	s.happened(m, func(time.Time) {
		m.LeftInFlight(workOf(flight))
		if outcome == inbox.LeftChecking {
			m.LeftToCheck()
		}
	})
}

// sweepChecks ends what checks of a killed run have left.
func (s *Scheduler) sweepChecks(ctx context.Context) {
	agents, err := s.desk.Sweep(ctx)
	for _, name := range agents {
		s.records.note(journal.Event{Agent: name, Kind: journal.Swept, Detail: "processes of a check were ended"})
	}
	if err != nil {
		s.log.Warn("cannot end all that checks have left", "err", err)
	}
}
