package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// dealing is how an entry whose session is gone is dealt with.
type dealing struct {
	// abandon: no conversation goes on with it.
	abandon bool
	// poison: it had all the chances that there are.
	poison bool
	// cancel is what a person has asked for, or nil.
	cancel *inbox.Cancellation
}

// recover deals with an entry whose session is gone.
func (s *Scheduler) recover(ctx context.Context, m *member, cfg *config.Agent, o session.Outcome, how dealing) (inbox.Outcome, error) {
	passes := agent.Passing
	if how.abandon {
		passes = nil
	}
	r, err := queue.RecoverOwn(ctx, cfg, inbox.Interruption{
		Policy: cfg.OnOrphan, MaxAttempts: cfg.MaxAttempts, Counts: agent.Counts(o) && !how.abandon, Passes: passes, Poison: how.poison,
		Untaken: o.Untaken, Unwatched: o.Unwatched || o.Why == hook.EndRunaway, Refused: o.Why == hook.EndAPIFailure,
		OverBudget: overBudget(o), Delivery: o.Delivery, Cause: agent.Describe(o),
		Cancel: how.cancel, Checked: func(f inbox.InFlight) bool { return s.desk.Demands(cfg, &f) },
		Judged: func(f inbox.InFlight) bool { return s.desk.Answered(m.key, &f) },
		Ends:   func(delivery string) error { return s.desk.NotAside(m.key, delivery) },
	})
	if r.Unreclaimed != nil {
		s.log.Warn("cannot free disk space", "agent", m.Name, "err", r.Unreclaimed)
	}
	if r.Reclaimable {
		s.happened(m, m.ReclaimLater)
	}
	if err == nil && r.Outcome == inbox.DroppedOrphan && r.Flight != nil {
		s.desk.Forgets(cfg, r.Flight.ID)
	}
	switch {
	case err != nil || r.Outcome == inbox.NothingToRecover || r.Outcome == inbox.StaleOrphanDeleted:
	case r.Outcome == inbox.LeftChecking || r.Outcome == inbox.LeftUnproven:
		s.leftToProve(m, r.Outcome, r.Flight)
	default:
		s.noteRecovered(m, r.Outcome, r.Flight)
	}
	return r.Outcome, err
}

// overBudget returns the delivery id of the entry that a session was ended for, or
// "".
func overBudget(o session.Outcome) string {
	if o.Why != hook.EndOverBudget {
		return ""
	}
	return o.Delivery
}

func (s *Scheduler) noteRecovered(m *member, outcome inbox.Outcome, flight *inbox.InFlight) {
	detail := ""
	if flight != nil {
		detail = fmt.Sprintf("entry %s, %s, attempt %d", flight.DeliveryID, flight.State, flight.Attempt)
	}
	kept := outcome == inbox.Kept
	if kept {
		detail += "; its conversation continues with it when the service is back (" + flight.Failure + ")"
		s.log.Info("an entry continues when the service is back", "agent", m.Name, "entry", detail)
	} else {
		s.log.Warn("recovered an interrupted entry", "agent", m.Name, "outcome", outcome, "entry", detail)
	}
	s.records.note(journal.Event{Agent: m.Name, Kind: journal.Recovered, Reason: foreign.Text(string(outcome)), Detail: foreign.Text(detail)})
	if flight != nil && (outcome == inbox.CancelledOrphan || outcome == inbox.DeadLettered || outcome == inbox.DroppedOrphan) {
		s.consent.Withdraw(context.Background(), m.key, flight.DeliveryID, "its prompt was given up ("+string(outcome)+")")
	}
	s.happened(m, func(time.Time) {
		if m.voidCheck != nil {
			m.voidCheck() // what it would say is of no use any more
		}
		m.LeftInFlight(nil)
		switch outcome {
		case inbox.Kept:
			m.LeftInFlight(workOf(flight))
		case inbox.DeadLettered, inbox.CancelledOrphan:
			m.DeadLettered()
		}
	})
}

func workOf(f *inbox.InFlight) *hook.Work {
	return &hook.Work{DeliveryID: f.DeliveryID, ID: f.ID, Source: f.Source, Attempt: f.Attempt, Since: f.DeliveredAt}
}

// recovery recovers what is in flight in a member's directory, after the session
// that is owed, or the last one if none is.
func (s *Scheduler) recovery(m *member, cfg *config.Agent, how dealing, owed *session.Outcome) {
	select {
	case s.recoveries <- struct{}{}:
	case <-s.work.Done():
		return // the next run recovers it
	}
	o, outcome, err := s.recoverLast(context.WithoutCancel(s.work), m, cfg, how, owed)
	<-s.recoveries
	if err != nil {
		s.log.Warn("cannot deal with the entry in flight yet", "agent", m.Name, "err", err)
	}
	s.happened(m, func(now time.Time) {
		m.Recovered(o, s.failure(cfg, err), now, agent.Roll())
		m.cancels(cancelled{outcome, err})
	})
}

func (s *Scheduler) recoverLast(
	ctx context.Context, m *member, cfg *config.Agent, how dealing, owed *session.Outcome,
) (o session.Outcome, outcome inbox.Outcome, err error) {
	if owed != nil {
		o = *owed
	} else {
		o = session.LastOutcome(s.opt.StateDir, cfg.Name)
	}
	wire := func() error { _, err := s.opt.Prepare(cfg); return err }
	err = claim.Furnish(cfg, wire)
	outcome, failed := s.recover(ctx, m, cfg, o, how)
	s.consent.TendAsides(ctx, petitioner{s, m})
	return o, outcome, errors.Join(err, failed)
}

// sweepGrace is how long the remains of a dead session may take to end.
const sweepGrace = 10 * time.Second

// cleanUp ends what earlier runs left and recovers their orphans.
func (s *Scheduler) cleanUp(ctx context.Context) error {
	s.sweepChecks(ctx)
	swept, err := session.SweepLeftovers(ctx, s.opt.StateDir, "", sweepGrace)
	for _, l := range swept {
		s.records.note(journal.Event{Agent: l.Agent, Kind: journal.Swept, Session: l.Session, Detail: "processes of a dead session were ended"})
		s.log.Warn("ended what a dead session had left", "agent", l.Agent, "session", l.Session)
	}
	if err != nil {
		s.log.Warn("cannot end all that dead sessions left", "err", err)
	}
	return s.recoverAll(ctx)
}

// recoveriesAtOnce limits how many agents are recovered at once.
func recoveriesAtOnce() int { return 4 * runtime.GOMAXPROCS(0) }

// recoverAll recovers what was in flight, several agents at once.
func (s *Scheduler) recoverAll(ctx context.Context) error {
	members := s.fleet.members
	var done atomic.Int64
	var all errgroup.Group
	all.SetLimit(recoveriesAtOnce())
	for _, m := range members {
		all.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			s.recoverLeft(ctx, m)
			s.opt.Recovering(int(done.Add(1)), len(members))
			return nil
		})
	}
	_ = all.Wait() // an agent that fails is backed off, alone
	return ctx.Err()
}

// recoverLeft recovers what an earlier run left in flight.
func (s *Scheduler) recoverLeft(ctx context.Context, m *member) {
	s.mu.Lock()
	cfg, lost := m.Def(), m.Place() == agent.Lost
	s.mu.Unlock()
	if lost {
		return
	}
	s.missing(m, cfg) // what is found from now on is news
	if _, err := s.desk.Left(ctx, cfg, m.key); err != nil {
		s.log.Warn("cannot compare what a session has left with what is proven", "agent", m.Name, "err", err)
	}
	o, _, err := s.recoverLast(ctx, m, cfg, dealing{}, nil)
	if err == nil {
		return
	}
	f := s.failure(cfg, err)
	s.happened(m, func(now time.Time) { m.Recovered(o, f, now, agent.Roll()) })
}
