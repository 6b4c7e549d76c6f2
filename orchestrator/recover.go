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

// orphans are entries in flight whose session is gone.
type orphans struct {
	*Scheduler
	atOnce chan struct{} // limits how many agents are recovered at once
}

// recover deals with an entry whose session is gone.
func (r *orphans) recover(ctx context.Context, m *member, cfg *config.Agent, o session.Outcome, how dealing) (queue.Recovered, error) {
	passes := agent.Passing
	if how.abandon {
		passes = nil
	}
	found, err := queue.RecoverOwn(ctx, cfg, inbox.Interruption{
		Policy: cfg.OnOrphan, MaxAttempts: cfg.MaxAttempts, Counts: agent.Counts(o) && !how.abandon, Fatal: agent.Fatal(o), Passes: passes, Poison: how.poison,
		Untaken: o.Untaken, Unwatched: o.Unwatched || o.Why == hook.EndRunaway, Refused: o.Why == hook.EndAPIFailure,
		OverBudget: overBudget(o), Delivery: o.Delivery, Cause: agent.Describe(o),
		Cancel: how.cancel, Checked: func(f inbox.InFlight) bool { return r.desk.Demands(cfg, &f) },
		Judged: func(f inbox.InFlight) bool { return r.desk.Answered(m.key, &f) },
		Ends:   func(delivery string) error { return r.desk.NotAside(m.key, delivery) },
	})
	if found.Unreclaimed != nil {
		r.log.Warn("cannot free disk space", "agent", m.Name, "err", found.Unreclaimed)
	}
	if found.Reclaimable {
		r.happened(m, m.ReclaimLater)
	}
	if err == nil && found.Outcome == inbox.DroppedOrphan && found.Flight != nil {
		r.desk.Forgets(cfg, found.Flight)
	}
	switch {
	case err != nil || found.Outcome == inbox.NothingToRecover || found.Outcome == inbox.StaleOrphanDeleted:
	case found.Outcome == inbox.LeftChecking || found.Outcome == inbox.LeftUnproven:
		r.leftToProve(m, found.Outcome, found.Flight)
	default:
		r.noteRecovered(m, found.Outcome, found.Flight)
	}
	return found, err
}

// exhausted reports whether an entry was given up that had used up its attempts.
func exhausted(r queue.Recovered, cfg *config.Agent) bool {
	return r.Outcome == inbox.DeadLettered && r.Flight != nil && r.Flight.Repeats >= cfg.MaxAttempts
}

// overBudget returns the delivery id of the entry that a session was ended for, or
// "".
func overBudget(o session.Outcome) string {
	if o.Why != hook.EndOverBudget {
		return ""
	}
	return o.Delivery
}

func (r *orphans) noteRecovered(m *member, outcome inbox.Outcome, flight *inbox.InFlight) {
	detail := ""
	if flight != nil {
		detail = fmt.Sprintf("entry %s, %s, attempt %d", flight.DeliveryID, flight.State, flight.Attempt)
	}
	kept := outcome == inbox.Kept
	if kept {
		detail += "; kept: it continues in its conversation when the service is back (" + flight.Failure + ")"
		r.log.Info("an interrupted prompt is kept; it continues when the service is back", "agent", m.Name, "prompt", flight.DeliveryID, "why", flight.Failure)
	} else {
		r.log.Warn("recovered an interrupted entry", "agent", m.Name, "outcome", outcome, "entry", detail)
	}
	r.records.note(journal.Event{Agent: m.Name, Kind: journal.Recovered, Reason: foreign.Text(string(outcome)), Detail: foreign.Text(detail)})
	if flight != nil && (outcome == inbox.CancelledOrphan || outcome == inbox.DeadLettered || outcome == inbox.DroppedOrphan) {
		r.consent.Withdraw(context.Background(), m.key, flight.DeliveryID, "its prompt was given up ("+string(outcome)+")")
	}
	r.happened(m, func(time.Time) {
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
func (r *orphans) recovery(m *member, cfg *config.Agent, how dealing, owed *session.Outcome) {
	select {
	case r.atOnce <- struct{}{}:
	case <-r.work.Done():
		return // the next run recovers it
	}
	o, outcome, err := r.recoverLast(context.WithoutCancel(r.work), m, cfg, how, owed)
	<-r.atOnce
	if err != nil {
		r.log.Warn("cannot deal with the entry in flight yet", "agent", m.Name, "err", err)
	}
	r.happened(m, func(now time.Time) {
		m.Recovered(o, r.failure(cfg, err), now, agent.Roll())
		m.cancels(cancelled{outcome, err})
	})
}

func (r *orphans) recoverLast(
	ctx context.Context, m *member, cfg *config.Agent, how dealing, owed *session.Outcome,
) (o session.Outcome, outcome inbox.Outcome, err error) {
	if owed != nil {
		o = *owed
	} else {
		o = session.LastOutcome(r.opt.StateDir, cfg.Name)
	}
	wire := func() error { _, err := r.opt.Prepare(cfg); return err }
	err = claim.Furnish(cfg, wire)
	found, failed := r.recover(ctx, m, cfg, o, how)
	if failed == nil && m.outlived.Swap(false) { // now it has ended
		r.sweep(m)
	}
	_ = r.consent.TendAsides(ctx, petitioner{r.Scheduler, m}) // it is tried again
	return o, found.Outcome, errors.Join(err, failed)
}

// sweepGrace is how long the remains of a dead session may take to end.
const sweepGrace = 10 * time.Second

// cleanUp ends what earlier runs left and recovers their orphans.
func (r *orphans) cleanUp(ctx context.Context) error {
	r.sweepChecks(ctx)
	swept, err := session.SweepLeftovers(ctx, r.opt.Store, r.opt.StateDir, "", sweepGrace)
	for _, l := range swept {
		r.records.note(journal.Event{Agent: l.Agent, Kind: journal.Swept, Session: l.Session, Detail: "processes of a dead session were ended"})
		r.log.Warn("ended what a dead session had left", "agent", l.Agent, "session", l.Session)
	}
	if err != nil {
		r.log.Warn("cannot end all that dead sessions left, or record what they have cost", "err", err)
	}
	left := session.NotedAgents(r.opt.StateDir)
	for _, m := range r.fleet.members {
		m.outlived.Store(left[m.Name])
	}
	return r.recoverAll(ctx)
}

// sweep ends what sessions of a member have left, and records what they have cost.
func (r *orphans) sweep(m *member) {
	if _, err := session.SweepLeftovers(context.Background(), r.opt.Store, r.opt.StateDir, m.Name, sweepGrace); err != nil {
		r.log.Warn("cannot end all that a dead session left, or record what it has cost", "agent", m.Name, "err", err)
	}
}

// recoveriesAtOnce limits how many agents are recovered at once.
func recoveriesAtOnce() int { return 4 * runtime.GOMAXPROCS(0) }

// recoverAll recovers what was in flight, several agents at once.
func (r *orphans) recoverAll(ctx context.Context) error {
	members := r.fleet.members
	var done atomic.Int64
	var all errgroup.Group
	all.SetLimit(recoveriesAtOnce())
	for _, m := range members {
		all.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			r.recoverLeft(ctx, m)
			r.opt.Recovering(int(done.Add(1)), len(members))
			return nil
		})
	}
	_ = all.Wait() // an agent that fails is backed off, alone
	return ctx.Err()
}

// recoverLeft recovers what an earlier run left in flight.
func (r *orphans) recoverLeft(ctx context.Context, m *member) {
	r.mu.Lock()
	cfg, lost := m.Def(), m.Place() == agent.Lost
	r.mu.Unlock()
	if lost {
		return
	}
	r.queues.missing(m, cfg) // what is found from now on is news
	if _, err := r.desk.Left(ctx, cfg, m.key); err != nil {
		r.log.Warn("cannot compare what a session has left with what is proven", "agent", m.Name, "err", err)
	}
	o, _, err := r.recoverLast(ctx, m, cfg, dealing{}, nil)
	if err == nil {
		return
	}
	f := r.failure(cfg, err)
	r.happened(m, func(now time.Time) { m.Recovered(o, f, now, agent.Roll()) })
}

// leftToProve takes what is in flight without a session: it is to be checked, or
// goes on in a session.
func (r *orphans) leftToProve(m *member, outcome inbox.Outcome, flight *inbox.InFlight) {
	r.log.Info("an entry is not proven yet", "agent", m.Name, "entry", flight.DeliveryID, "iteration", flight.Iteration, "state", outcome)
	r.happened(m, func(time.Time) {
		m.LeftInFlight(workOf(flight))
		if outcome == inbox.LeftChecking {
			m.LeftToCheck()
		}
	})
}

// sweepChecks ends what checks of a killed run have left.
func (r *orphans) sweepChecks(ctx context.Context) {
	agents, err := r.desk.Sweep(ctx)
	for _, name := range agents {
		r.records.note(journal.Event{Agent: name, Kind: journal.Swept, Detail: "processes of a check were ended"})
	}
	if err != nil {
		r.log.Warn("cannot end all that checks have left", "err", err)
	}
}
