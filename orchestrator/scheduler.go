// Package orchestrator brings what is declared and what is there together,
// for many agents: it locks directories, recovers orphans, fires triggers into
// inboxes, starts a session where work is queued and a slot is free, and
// decides what follows each session's end. It acts on state: after every end it
// looks at the queue again, and never relies on having caught an event.
package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
)

// Options say what a Scheduler runs.
type Options struct {
	Fleet *config.Fleet
	// Only names the agents to run; empty means all.
	Only []string
	// Once ends the run when nothing is queued, in flight or backing off;
	// OnceTimeout bounds that (0: an hour). No trigger fires, unless Fire is
	// set: then each fires one time.
	Once, Fire  bool
	OnceTimeout time.Duration
	StateDir    string
	// RuntimeDir is where sessions have the sockets by which others join
	// them; "": nowhere.
	RuntimeDir string
	Runner     Runner
	// Prepare brings an agent's directory in line with its declaration and
	// returns the settings file to pass by --settings, or "".
	Prepare func(*config.Agent) (Prepared, error)
	// Inboxes calls changed soon after a file in one of the folders changed,
	// with its path, until ctx ends (watch.Folders). Without it, and as a
	// safety net beside it, queues are looked at now and then.
	Inboxes func(ctx context.Context, folders []string, changed func(path string)) error
	Log     *slog.Logger
	// Step is told what the run is doing, for people and machines.
	Step func(string)
}

// Prepared is what a session has to know of its workspace.
type Prepared struct {
	SettingsFile     string
	ForeignStopHooks bool
	Changed          bool
}

// Scheduler is a running fleet. One lock guards all of its agents' states;
// nothing blocks while it is held but small reads of an agent's queue.
type Scheduler struct {
	opt     Options
	log     *slog.Logger
	journal *journal
	agents  []*agent
	wg      sync.WaitGroup
	polls   chan struct{} // room for poll commands that run at once

	mu       sync.Mutex
	stopping bool
	firing   int // triggers that --fire has not finished
	// unfired counts triggers that --fire could not fire.
	unfired int
	quit    context.CancelCauseFunc
}

// agent is one declared agent and its actual state.
type agent struct {
	cfg *config.Agent

	// Guarded by Scheduler.mu.
	state   State
	since   time.Time
	until   time.Time
	reason  string
	history history
	live    Session
	last    session.Report   // of the live session, or the last one
	outcome *session.Outcome // of the last session
	session string           // id of the live or last session
	timer   *time.Timer
	yielded bool
	// total counts over this run.
	acknowledged, deadLettered int
}

// errFinished ends a run with Once.
var errFinished = errors.New("nothing is left to do")

// ErrShutdown is the cause with which a run ends when it was asked to.
var ErrShutdown = errors.New("asked to stop")

// errOnceTimeout ends a run with Once that took too long.
var errOnceTimeout = errors.New("once-timeout")

// maxPolls bounds how many poll commands run at once.
const maxPolls = 16

// New returns a Scheduler of the fleet's agents.
func New(opt Options) (*Scheduler, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Step == nil {
		opt.Step = func(string) {}
	}
	s := &Scheduler{opt: opt, log: opt.Log, polls: make(chan struct{}, maxPolls)}
	for _, a := range opt.Fleet.Agents {
		if len(opt.Only) == 0 || slices.Contains(opt.Only, a.Name) {
			s.agents = append(s.agents, &agent{cfg: a, state: Idle, since: time.Now()})
		}
	}
	return s, nil
}

// Run runs the fleet until ctx ends or, with Once, until nothing is left to
// do. When it returns, no session is left.
func (s *Scheduler) Run(ctx context.Context) (*Summary, error) {
	j, err := openJournal(s.opt.StateDir)
	if err != nil {
		return nil, err
	}
	defer j.close()
	s.journal = j
	release, err := s.takeDirectories()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.cleanUp(ctx); err != nil {
		return nil, err
	}

	// Work goes on in a context of its own: the end of ctx starts the end of
	// the sessions, it does not tear what they are doing.
	work, quit := context.WithCancelCause(context.WithoutCancel(ctx))
	s.quit = quit
	stopOnSignal := context.AfterFunc(ctx, func() { quit(ErrShutdown) })
	defer stopOnSignal()
	s.startTriggers(work)
	s.watchInboxes(work)
	s.evaluateAll()
	if s.opt.Once {
		limit := s.opt.OnceTimeout
		if limit <= 0 {
			limit = time.Hour
		}
		timer := time.AfterFunc(limit, func() { quit(errOnceTimeout) })
		defer timer.Stop()
	}
	<-work.Done()
	s.opt.Step("ending the sessions")
	s.stop()
	s.wg.Wait()
	return s.summary(context.Cause(work)), nil
}

// stop starts nothing new and ends what runs.
func (s *Scheduler) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, a := range s.agents {
		if a.timer != nil {
			a.timer.Stop()
		}
		if a.live != nil {
			a.live.Order(session.Order{Stop: true})
		}
	}
}

func (s *Scheduler) evaluateAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agents {
		s.evaluateLocked(a)
	}
	s.finishOnceLocked()
}

// noticed is called when something may have been appended to an inbox.
func (s *Scheduler) noticed(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evaluateLocked(a)
}

// evaluateLocked compares what an agent should do with what it does.
func (s *Scheduler) evaluateLocked(a *agent) {
	if s.stopping || a.state != Idle && a.state != Waiting {
		return
	}
	depth, err := pending(a.cfg)
	switch {
	case err != nil:
		s.failLocked(a, err)
		return
	case depth.Entries == 0:
		if depth.Tail {
			s.againLocked(a, tailCheck)
		}
		s.enterLocked(a, Idle, a.reason, time.Time{})
		return
	}
	if s.usedLocked() >= s.opt.Fleet.MaxSessions {
		s.enterLocked(a, Waiting, "all session slots are taken", time.Time{})
		s.askForSlotLocked()
		return
	}
	if first := s.longestWaitingLocked(); first != nil && first != a {
		s.enterLocked(a, Waiting, "other agents wait longer", time.Time{})
		return
	}
	s.enterLocked(a, Starting, "work is queued", time.Time{})
	s.wg.Go(func() { s.session(a) })
}

// tailCheck is when to look again at a line without its newline: a quiet
// writer's line counts after 5 seconds (inbox.Queue.Next).
const tailCheck = 6 * time.Second

// againLocked looks at an idle agent again after d.
func (s *Scheduler) againLocked(a *agent, d time.Duration) {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timer = time.AfterFunc(d, func() {
		settleTail(a.cfg, s.log)
		s.noticed(a)
	})
}

// usedLocked counts the sessions that hold a slot.
func (s *Scheduler) usedLocked() int {
	n := 0
	for _, a := range s.agents {
		if a.state == Starting || a.state == Running || a.state == Ending {
			n++
		}
	}
	return n
}

// longestWaitingLocked returns the agent that has waited longest for a slot.
func (s *Scheduler) longestWaitingLocked() *agent {
	var first *agent
	for _, a := range s.agents {
		if a.state == Waiting && (first == nil || a.since.Before(first.since)) {
			first = a
		}
	}
	return first
}

// enterLocked is the one place where an agent's state changes.
func (s *Scheduler) enterLocked(a *agent, to State, reason string, until time.Time) {
	if a.state == to {
		a.until = until
		return
	}
	from := a.state
	a.state, a.since, a.until, a.reason = to, time.Now(), until, reason
	s.note(Event{Agent: a.cfg.Name, Kind: "state", From: from, State: to, Reason: reason, Until: until, Session: a.session})
	s.log.Info("agent "+string(to), "agent", a.cfg.Name, "why", reason)
	s.opt.Step(a.cfg.Name + ": " + string(to))
	s.publishLocked(a)
}

// failLocked deals with an error of ours (a queue that cannot be read, a
// launch that failed): back-off, or a person where only one can help.
func (s *Scheduler) failLocked(a *agent, err error) {
	s.log.Error("agent failed", "agent", a.cfg.Name, "err", err)
	if errors.Is(err, inbox.ErrNeedsOperator) {
		s.enterLocked(a, Held, err.Error(), time.Time{})
		return
	}
	o := session.Outcome{Detail: err.Error()}
	n, h := failed(o, a.history, s.rule(a), time.Now(), roll())
	a.history = h
	n.reason = err.Error()
	s.followLocked(a, n)
}

func (s *Scheduler) rule(a *agent) restartRule {
	return restartRule{max: a.cfg.MaxRestarts, window: a.cfg.RestartWindow}
}

// followLocked carries out what the policy decided.
func (s *Scheduler) followLocked(a *agent, n next) {
	s.enterLocked(a, n.state, n.reason, n.until)
	if !n.until.IsZero() && !s.stopping {
		if a.timer != nil {
			a.timer.Stop()
		}
		a.timer = time.AfterFunc(time.Until(n.until), func() { s.delayOver(a) })
	}
}

// delayOver ends a back-off or parking.
func (s *Scheduler) delayOver(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || a.state != BackingOff && a.state != Parked {
		return
	}
	s.enterLocked(a, Idle, "its delay is over", time.Time{})
	s.evaluateLocked(a)
	s.finishOnceLocked()
}

func (s *Scheduler) note(e Event) {
	e.At = time.Now()
	if err := s.journal.add(e); err != nil {
		s.log.Warn("cannot write the journal", "err", err)
	}
}
