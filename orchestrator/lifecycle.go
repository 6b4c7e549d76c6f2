package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// takeDirectories locks each AGENT_DIR for the life of the run: one directory,
// one consumer. A directory that cannot be one is its agent's loss alone, unless
// there is no other.
func (s *Scheduler) takeDirectories() error {
	var errs, losses []error
	lost := map[*agent]error{}
	for _, a := range s.agents {
		claimed, err := claim.Take(a.cfg)
		if _, held := errors.AsType[*claim.HeldError](err); held {
			errs = append(errs, err)
		} else if err != nil {
			claimed, lost[a] = claim.Lost(), err
			losses = append(losses, err)
		}
		a.claim = claimed
	}
	if len(errs) > 0 || len(lost) == len(s.agents) {
		return claim.Joined(append(errs, losses...))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, err := range lost {
		s.noteLostLocked(a, err.Error()) // begin has it looked for
	}
	return nil
}

// releaseDirectories gives all directories back.
func (s *Scheduler) releaseDirectories() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agents {
		a.release()
	}
}

// recoverLeft recovers what an earlier run left in flight.
func (s *Scheduler) recoverLeft(ctx context.Context, a *agent, cfg *config.Agent) {
	s.mu.Lock()
	lost := a.lost != ""
	s.mu.Unlock()
	if lost {
		return
	}
	o := session.LastOutcome(s.opt.StateDir, cfg.Name)
	err := errors.Join(s.furnish(cfg), s.recover(ctx, a, cfg, o, dealing{}))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		a.owed = &o
		s.failLocked(a, err)
	}
}

const sweepGrace = 10 * time.Second

// dealing is how an entry is dealt with whose session is gone.
type dealing struct {
	// abandon: no conversation goes on with it.
	abandon bool
	// poison: it had all the chances that there are.
	poison bool
}

// recover deals with an entry whose session is gone.
func (s *Scheduler) recover(ctx context.Context, a *agent, cfg *config.Agent, o session.Outcome, how dealing) error {
	passes := passing
	if how.abandon {
		passes = nil
	}
	r, err := queue.RecoverOwn(ctx, cfg, inbox.Interruption{
		Policy: cfg.OnOrphan, MaxAttempts: cfg.MaxAttempts, Counts: counts(o) && !how.abandon, Passes: passes, Poison: how.poison,
		Arrived: arrived(cfg), Untaken: o.Untaken, Unwatched: o.Unwatched || o.Why == hook.EndRunaway, Refused: o.Why == hook.EndAPIFailure, Now: time.Now(),
		Finished: func(f inbox.InFlight) *inbox.Acknowledgement { return hook.Finished(cfg.Home, f, time.Now()) },
	})
	if r.Unreclaimed != nil {
		s.log.Warn("cannot give disk space back", "agent", a.name, "err", r.Unreclaimed)
	}
	if r.Reclaimable {
		s.reclaimLater(a)
	}
	if err == nil && r.Outcome != inbox.NothingToRecover && r.Outcome != inbox.StaleOrphanDeleted {
		s.noteRecovered(a, r.Outcome, r.Flight)
	}
	return err
}

// arrived looks for evidence in the transcripts of an agent's sessions.
func arrived(cfg *config.Agent) func(inbox.InFlight) inbox.Arrival {
	dir, _ := launch.ConfigDir(cfg) // without its env-file it has no session
	return hook.ArrivedIn(dir)
}

func (s *Scheduler) noteRecovered(a *agent, outcome inbox.Outcome, flight *inbox.InFlight) {
	detail := ""
	if flight != nil {
		detail = fmt.Sprintf("entry %s, %s, attempt %d", flight.DeliveryID, flight.State, flight.Attempt)
	}
	s.mu.Lock()
	if a.halted = nil; outcome == inbox.Kept {
		a.halted = &hook.Work{DeliveryID: flight.DeliveryID, ID: flight.ID, Source: flight.Source, Attempt: flight.Attempt, Since: flight.DeliveredAt}
		detail += "; its conversation goes on with it when the service is back (" + flight.Failure + ")"
	}
	s.mu.Unlock()
	s.note(journal.Event{Agent: a.name, Kind: journal.Recovered, Reason: foreign.Text(string(outcome)), Detail: foreign.Text(detail)})
	if outcome == inbox.Kept {
		s.log.Info("an entry goes on when the service is back", "agent", a.name, "entry", detail)
		return
	}
	s.log.Warn("recovered an interrupted entry", "agent", a.name, "outcome", outcome, "entry", detail)
	if outcome == inbox.DeadLettered {
		s.mu.Lock()
		a.deadLettered++
		s.mu.Unlock()
	}
}

// session is one session of an agent, as cfg declares it, from preparing to
// recovering.
func (s *Scheduler) session(a *agent, cfg *config.Agent) {
	if !s.has(a, cfg) {
		s.notBegun(a)
		s.inspect(a)
		return
	}
	env, err := launch.Environment(cfg)
	if err != nil {
		s.launchFailed(a, err)
		return
	}
	if !s.admit(a, account.Of(env)) {
		return
	}
	prepared, err := s.opt.Prepare(cfg)
	if err != nil {
		s.launchFailed(a, err)
		return
	}
	if prepared.Changed {
		s.note(journal.Event{Agent: a.name, Kind: journal.Applied})
	}
	spec, err := s.specFor(a, cfg, prepared, env)
	if err != nil {
		s.launchFailed(a, err)
		return
	}
	live, err := s.opt.Runner.Start(context.Background(), spec)
	if err != nil {
		s.launchFailed(a, err)
		return
	}
	started := time.Now()
	s.launched(a, live, spec.Session, started)
	outcome := s.attend(a, cfg, live)
	s.note(journal.Event{
		Agent: a.name, Kind: journal.Ended, Session: spec.Session, Reason: foreign.Text(describe(outcome)), Detail: foreign.Text(outcome.Screen),
		Started: started, Acknowledged: outcome.Acknowledged, Why: outcome.Why,
	})
	how := dealing{abandon: s.conversed(a, spec, outcome), poison: s.poisonous(a, outcome)}
	err = s.recover(context.Background(), a, cfg, outcome, how)
	s.ended(a, cfg, outcome, how.poison, err)
}

// specFor is the spec of a session that goes on with what the service has
// interrupted, if anything. Where that is not possible, the entry is an orphan.
func (s *Scheduler) specFor(a *agent, cfg *config.Agent, prepared launch.Prepared, env []string) (session.Spec, error) {
	f, err := interrupted(cfg)
	if err != nil {
		return session.Spec{}, err
	}
	policy := cfg.Policy()
	if err := s.meet(a, &policy, prepared.StopHooks); err != nil {
		return session.Spec{}, err
	}
	if s.opt.Once {
		policy.Mode = hook.Drain
	}
	t := launch.Ticket{
		Agent: cfg, Key: a.key, Env: env, Policy: policy, Prepared: prepared, Interrupted: f, GoesOn: s.goingOn(a),
		StateDir: s.opt.StateDir, RuntimeDir: s.opt.RuntimeDir,
	}
	spec, err := t.Spec()
	if err == nil && f != nil && spec.GoOn == "" {
		s.log.Warn("it is not known in which conversation an entry was interrupted", "agent", a.name, "entry", f.DeliveryID)
		err = s.recover(context.Background(), a, cfg, session.Outcome{Why: hook.EndAPIFailure, Detail: f.Failure}, dealing{abandon: true})
	}
	return spec, err
}

// poisonous reports whether the entry in work at a session's end is to be given
// up for the sake of those behind it.
func (s *Scheduler) poisonous(a *agent, o session.Outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return poisonous(o, a.history, s.rule(a), time.Now())
}

// attend follows a live session to its end.
func (s *Scheduler) attend(a *agent, cfg *config.Agent, live session.Live) session.Outcome {
	var last session.Report
	reclaim := time.NewTicker(reclaimEvery)
	defer reclaim.Stop()
	for {
		select {
		case r, open := <-live.Reports():
			if !open {
				return s.outcomeOf(a, last)
			}
			if last = r; r.Outcome == nil {
				s.reported(a, r)
			}
		case <-reclaim.C:
			s.reclaim(a, cfg)
		}
	}
}

// outcomeOf is how a session ended, by its shim's last word. Where that is none
// the shim died, and what it left is ended.
func (s *Scheduler) outcomeOf(a *agent, last session.Report) session.Outcome {
	if last.Outcome == nil {
		if _, err := session.SweepLeftovers(context.Background(), s.opt.StateDir, a.name, sweepGrace); err != nil {
			s.log.Warn("cannot end all that a dead session left", "agent", a.name, "err", err)
		}
		return shimDied(last)
	}
	return *last.Outcome
}

func (s *Scheduler) launched(a *agent, live session.Live, id string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.halted = nil
	a.live, a.session, a.started, a.last = live, id, at, session.Report{Phase: hook.Starting, At: at}
	a.yields, a.leaving = false, false
	s.enterLocked(a, Running, "session started", time.Time{})
	switch {
	case s.endNow:
		live.Order(session.Order{Stop: true, Shutdown: true})
	case s.stopping:
		s.finishLocked(a, finishShutdown)
	case a.removed:
		s.finishLocked(a, finishRemoved)
	case !a.paused.IsZero():
		s.finishLocked(a, a.pausedReason())
	case a.next != nil && a.cfg.Mode == hook.Persist:
		s.finishLocked(a, finishChanged)
	}
}

// finishLocked tells a live session to end after its turn.
func (s *Scheduler) finishLocked(a *agent, why string) {
	a.leaving = true
	a.live.Order(session.Order{Finish: why, Shutdown: s.stopping})
}

// reported takes what a live session says of itself.
func (s *Scheduler) reported(a *agent, r session.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	worked := r.Acknowledged > a.last.Acknowledged
	bound := a.last.Phase == hook.Starting && r.Phase != hook.Starting
	a.turnsLocked(r.Phase, r.At)
	if r.At = time.Now(); r.Phase == a.last.Phase {
		r.At = a.last.At // since when it does what it does
	}
	a.last, a.yields = r, a.yields && (r.Phase == hook.Waiting || r.Phase == hook.Ending)
	if worked {
		s.log.Info("entry done", "agent", a.name, "done", a.acknowledged+r.Acknowledged)
		s.worksLocked(a)
	}
	if r.Phase == hook.Ending {
		s.enterLocked(a, Ending, cmp.Or(r.Why, "its session is being ended"), time.Time{})
	} else if a.state == Ending {
		s.enterLocked(a, Running, "a turn began after all", time.Time{})
	}
	s.opt.Step(fmt.Sprintf("%s: %s, %d done", a.name, r.Phase, a.acknowledged+r.Acknowledged))
	s.publishLocked(a)
	if bound {
		s.slotFreedLocked() // the next start need not wait any more
	}
	s.askForSlotLocked()
}

// notBegun takes back the start of a session.
func (s *Scheduler) notBegun(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declinesLocked(a)
	s.followLocked(a, next{state: Idle, reason: "its directory is not the one that was locked"})
	s.vacatedLocked(a)
	s.slotFreedLocked()
}

func (s *Scheduler) launchFailed(a *agent, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declinesLocked(a)
	s.failLocked(a, err)
	s.vacatedLocked(a)
	s.slotFreedLocked()
}

// ended decides what follows a session's end.
func (s *Scheduler) ended(a *agent, cfg *config.Agent, o session.Outcome, poison bool, recoverErr error) {
	s.learn(a, o)
	l, now := queue.LookInto(cfg), claim.Folders(cfg)
	s.mu.Lock()
	a.queued, a.folders = l.Depth.Entries, now
	a.goesOnLocked(cfg, o, l.Err != nil || hasWork(l.Depth), time.Now())
	s.mu.Unlock()
	s.endedWith(a, o, l.Err != nil || hasWork(l.Depth), poison, recoverErr)
	s.noticed(a)
}

// endedWith is told whether something is left in the queue.
func (s *Scheduler) endedWith(a *agent, o session.Outcome, left, poison bool, recoverErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.live = nil
	a.turnsLocked(hook.Ended, time.Now())
	a.acknowledged += o.Acknowledged
	a.outcome = &o
	a.last.Work = nil
	s.logEnd(a, o)
	now := time.Now()
	n, blamed := s.judgedLocked(a, o, now)
	h := a.history
	switch {
	case poison && recoverErr == nil:
		n, h = poisoned(o, a.history)
	case !blamed:
		n, h = after(o, left, a.history, s.rule(a), now, roll())
	case o.Acknowledged > 0:
		h = history{}
	}
	if o.Loss != nil {
		s.queueLostLocked(a, *o.Loss)
	}
	a.history = h
	s.stuckLocked(a, o, now)
	if recoverErr != nil {
		a.owed = &o // before the next start
	}
	if recoverErr != nil && (n.state == Idle || errors.Is(recoverErr, inbox.ErrNeedsOperator)) {
		s.failLocked(a, recoverErr)
	} else {
		if recoverErr != nil {
			s.log.Error("cannot deal with the entry in flight yet", "agent", a.name, "err", recoverErr)
		}
		s.followLocked(a, n)
	}
	s.vacatedLocked(a)
	s.slotFreedLocked()
}

func (s *Scheduler) logEnd(a *agent, o session.Outcome) {
	log := s.log.With("agent", a.name, "why", describe(o), "acknowledged", o.Acknowledged)
	switch o.Why {
	case hook.EndDrained, hook.EndReleased, hook.EndFinished, hook.EndShutdown:
		log.Info("session ended")
	default:
		if o.Screen != "" {
			log = log.With("screen", o.Screen)
		}
		log.Warn("session ended")
	}
}

// shimDied is the outcome of a session whose shim ended without one.
func shimDied(last session.Report) session.Outcome {
	return session.Outcome{
		Why: hook.EndCrashed, Detail: "its shim died", Acknowledged: last.Acknowledged,
		Bound: last.Phase != "" && last.Phase != hook.Starting,
	}
}

// interrupted returns the entry in flight of an agent without a session, where
// a failure that passes has ended its turn; or nil.
func interrupted(c *config.Agent) (*inbox.InFlight, error) {
	f, err := queue.InFlight(c)
	if err != nil || f == nil || !passing(f.Failure) {
		return nil, err
	}
	return f, nil
}

// conversed forgets a conversation that does not exist: its first session
// never began, or the client has deleted it or cannot read it. It reports the
// latter.
func (s *Scheduler) conversed(a *agent, spec session.Spec, o session.Outcome) (deleted bool) {
	deleted = launch.NoConversation(spec, o)
	if !deleted && (o.Bound || spec.Resume != "") {
		return false
	}
	if err := launch.Forget(s.opt.StateDir, a.key); err != nil {
		s.log.Warn("cannot forget a conversation", "agent", a.name, "err", err)
	}
	if deleted {
		s.note(journal.Event{Agent: a.name, Kind: journal.Forgot, Session: spec.Session, Detail: foreign.Text("the client has no conversation " + spec.Resume + "; the next session begins a new one")})
		s.log.Warn("the conversation is gone; the next session begins a new one", "agent", a.name, "conversation", spec.Resume)
	}
	return deleted
}
