package orchestrator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/operator"
	"heartbeat/orchestrator/session"
)

// takeDirectories locks each AGENT_DIR for the life of the run: one directory,
// one consumer.
func (s *Scheduler) takeDirectories() (release func(), err error) {
	var locks []func() error
	release = func() {
		for _, unlock := range locks {
			_ = unlock()
		}
	}
	var errs []error
	for _, a := range s.agents {
		if err := os.MkdirAll(a.cfg.Home, 0o700); err != nil {
			errs = append(errs, fmt.Errorf("cannot prepare agent %q: %w", a.cfg.Name, err))
			continue
		}
		unlock, err := flock.TryLock(a.cfg.Dir)
		switch {
		case errors.Is(err, flock.ErrHeld):
			errs = append(errs, &HeldError{Agent: a.cfg.Name, Dir: a.cfg.Dir})
		case err != nil:
			errs = append(errs, fmt.Errorf("cannot lock the directory of agent %q: %w", a.cfg.Name, err))
		default:
			locks = append(locks, unlock)
		}
	}
	if len(errs) > 0 {
		release()
		return nil, errors.Join(errs...)
	}
	return release, nil
}

// HeldError means that another scheduler runs an agent's directory.
type HeldError struct{ Agent, Dir string }

// Error names the agent and its directory.
func (e *HeldError) Error() string {
	return fmt.Sprintf("cannot lock the directory of agent %q: another heartbeat runs in %q", e.Agent, e.Dir)
}

// Hint says what to do.
func (e *HeldError) Hint() string {
	return "stop the other `heartbeat run` first (`heartbeat status` shows it); one directory has one consumer"
}

// cleanUp ends what earlier runs left and recovers their orphans.
func (s *Scheduler) cleanUp(ctx context.Context) error {
	swept, err := session.SweepLeftovers(ctx, s.opt.StateDir, "", sweepGrace)
	for _, l := range swept {
		s.note(Event{Agent: l.Agent, Kind: "swept", Session: l.Session, Detail: "processes of a dead session were ended"})
		s.log.Warn("ended what a dead session had left", "agent", l.Agent, "session", l.Session)
	}
	if err != nil {
		s.log.Warn("cannot end all that dead sessions left", "err", err)
	}
	for _, a := range s.agents {
		s.opt.Step(a.cfg.Name + ": recovering")
		if err := s.recover(ctx, a, lastOutcome(a.cfg.Home)); err != nil {
			s.mu.Lock()
			s.failLocked(a, err)
			s.mu.Unlock()
		}
	}
	return ctx.Err()
}

const sweepGrace = 10 * time.Second

// lastOutcome is what the record of a session tells of how it ended, when
// its scheduler is no more.
func lastOutcome(home string) session.Outcome {
	r, err := hook.ReadRecord(home)
	if err != nil || r == nil {
		return session.Outcome{Why: hook.EndCrashed, Bound: true}
	}
	o := session.Outcome{Why: hook.EndCrashed, Bound: !r.BoundAt.IsZero(), Acknowledged: r.Acknowledged}
	if r.Ruling != nil {
		o.Why, o.Detail = r.Ruling.Why, r.Ruling.Detail
	}
	return o
}

// recover deals with an entry whose session is gone. It holds the session
// lock and the hook lock; the run lock is held already.
func (s *Scheduler) recover(ctx context.Context, a *agent, o session.Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoverWait)
	defer cancel()
	unlockSession, err := flock.Lock(ctx, session.SessionLock(a.cfg.Inbox))
	if err != nil {
		return fmt.Errorf("cannot recover agent %q: a session still lives: %w", a.cfg.Name, err)
	}
	defer unlockSession()
	q, err := operator.Open(a.cfg)
	if err != nil {
		return err
	}
	defer q.Close()
	unlock, err := q.Lock(ctx)
	if err != nil {
		return fmt.Errorf("cannot recover agent %q: %w", a.cfg.Name, err)
	}
	defer unlock()
	if err := q.Reclaim(); err != nil {
		s.log.Warn("cannot give disk space back", "agent", a.cfg.Name, "err", err)
	}
	outcome, flight, err := q.Recover(inbox.Interruption{
		Policy: a.cfg.OnOrphan, MaxAttempts: a.cfg.MaxAttempts, Counts: counts(o),
		Arrived: hook.Arrived, Now: time.Now(),
	})
	if err != nil {
		return fmt.Errorf("cannot recover agent %q: %w", a.cfg.Name, err)
	}
	if outcome != inbox.NothingToRecover && outcome != inbox.StaleOrphanDeleted {
		s.noteRecovered(a, outcome, flight)
	}
	return nil
}

const recoverWait = 30 * time.Second

func (s *Scheduler) noteRecovered(a *agent, outcome inbox.Outcome, flight *inbox.InFlight) {
	detail := ""
	if flight != nil {
		detail = fmt.Sprintf("entry %s, %s, attempt %d", flight.DeliveryID, flight.State, flight.Attempt)
	}
	s.note(Event{Agent: a.cfg.Name, Kind: "recovered", Reason: string(outcome), Detail: detail})
	s.log.Warn("recovered an interrupted entry", "agent", a.cfg.Name, "outcome", outcome, "entry", detail)
	if outcome == inbox.DeadLettered {
		s.mu.Lock()
		a.deadLettered++
		s.mu.Unlock()
	}
}

// session is one session of an agent from preparing to recovering.
func (s *Scheduler) session(a *agent) {
	prepared, err := s.opt.Prepare(a.cfg)
	if err != nil {
		s.launchFailed(a, err)
		return
	}
	if prepared.Changed {
		s.note(Event{Agent: a.cfg.Name, Kind: "applied"})
	}
	spec, err := s.spec(a, prepared)
	if err != nil {
		s.launchFailed(a, err)
		return
	}
	live, err := s.opt.Runner.Start(context.Background(), spec)
	if err != nil {
		s.launchFailed(a, err)
		return
	}
	s.launched(a, live, spec.Session)
	outcome := s.attend(a, live)
	s.note(Event{
		Agent: a.cfg.Name, Kind: "ended", Session: spec.Session, Reason: describe(outcome), Detail: outcome.Screen,
	})
	err = s.recover(context.Background(), a, outcome)
	s.ended(a, outcome, err)
}

// attend follows a live session to its end.
func (s *Scheduler) attend(a *agent, live Session) session.Outcome {
	var last session.Report
	for r := range live.Reports() {
		last = r
		if r.Outcome != nil {
			continue
		}
		s.reported(a, r)
	}
	if last.Outcome == nil {
		if _, err := session.SweepLeftovers(context.Background(), s.opt.StateDir, a.cfg.Name, sweepGrace); err != nil {
			s.log.Warn("cannot end all that a dead session left", "agent", a.cfg.Name, "err", err)
		}
		return shimDied(last)
	}
	return *last.Outcome
}

func (s *Scheduler) launched(a *agent, live Session, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.live, a.session, a.last, a.yielded = live, id, session.Report{Phase: hook.Starting, At: time.Now()}, false
	s.enterLocked(a, Running, "session started", time.Time{})
	if s.stopping {
		live.Order(session.Order{Stop: true})
	}
}

// reported takes what a live session says of itself.
func (s *Scheduler) reported(a *agent, r session.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Acknowledged > a.last.Acknowledged {
		s.log.Info("entry done", "agent", a.cfg.Name, "done", a.acknowledged+r.Acknowledged)
	}
	a.last = r
	if r.Phase == hook.Ending {
		s.enterLocked(a, Ending, "its session is being ended", time.Time{})
	} else if a.state == Ending {
		s.enterLocked(a, Running, "a turn began after all", time.Time{})
	}
	s.opt.Step(fmt.Sprintf("%s: %s, %d done", a.cfg.Name, r.Phase, a.acknowledged+r.Acknowledged))
	s.publishLocked(a)
	s.askForSlotLocked()
}

func (s *Scheduler) launchFailed(a *agent, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(a, err)
	s.slotFreedLocked()
}

// ended decides what follows a session's end.
func (s *Scheduler) ended(a *agent, o session.Outcome, recoverErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.live = nil
	a.acknowledged += o.Acknowledged
	a.outcome = &o
	a.last.Work = nil
	s.logEnd(a, o)
	if recoverErr != nil {
		s.failLocked(a, recoverErr)
	} else {
		d, err := pending(a.cfg)
		n, h := after(o, err != nil || d.Entries > 0, a.history, s.rule(a), time.Now(), roll())
		a.history = h
		s.followLocked(a, n)
		s.evaluateLocked(a)
	}
	s.slotFreedLocked()
}

func (s *Scheduler) logEnd(a *agent, o session.Outcome) {
	log := s.log.With("agent", a.cfg.Name, "why", describe(o), "acknowledged", o.Acknowledged)
	switch o.Why {
	case hook.EndDrained, hook.EndReleased, hook.EndShutdown:
		log.Info("session ended")
	default:
		if o.Screen != "" {
			log = log.With("screen", o.Screen)
		}
		log.Warn("session ended")
	}
}

// slotFreedLocked gives free slots to those who wait, longest first.
func (s *Scheduler) slotFreedLocked() {
	for s.usedLocked() < s.opt.Fleet.MaxSessions {
		a := s.longestWaitingLocked()
		if a == nil {
			break
		}
		s.evaluateLocked(a)
		if a.state == Waiting {
			break
		}
	}
	s.finishOnceLocked()
}

// askForSlotLocked asks the session that has waited longest for work to give
// its slot to an agent that has some.
func (s *Scheduler) askForSlotLocked() {
	if s.longestWaitingLocked() == nil {
		return
	}
	var idlest *agent
	for _, a := range s.agents {
		if a.state == Ending || a.yielded && a.state == Running {
			return // a slot is coming free
		}
		if a.state != Running || a.last.Phase != hook.Waiting || a.cfg.OnIdle != hook.IdleRelease {
			continue
		}
		if idlest == nil || a.last.At.Before(idlest.last.At) {
			idlest = a
		}
	}
	if idlest != nil {
		idlest.yielded = true
		idlest.live.Order(session.Order{Yield: true})
	}
}

// newToken returns a session's 128-bit cookie.
func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// newUUID returns a random UUID (RFC 9562, version 4), as --session-id wants.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
