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
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/slots"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/stophooks"
)

// Options say what a Scheduler runs.
type Options struct {
	Fleet *config.Fleet
	// Only names the agents to run; empty means all.
	Only []string
	// Once ends the run when nothing is queued, in flight or backing off;
	// OnceTimeout is when it is asked to stop otherwise (0: an hour). No trigger
	// fires, unless Fire is set: then each of those that are declared at the
	// start fires one time.
	Once, Fire  bool
	OnceTimeout time.Duration
	StateDir    string
	// RuntimeDir is where sessions have the sockets by which others join
	// them; "": nowhere.
	RuntimeDir string
	Runner     session.Runner
	// Prepare brings an agent's directory in line with its declaration and
	// returns the settings file to pass by --settings, or "".
	Prepare func(*config.Agent) (launch.Prepared, error)
	// Inboxes calls changed soon after a file in one of the folders changed,
	// with its path, until ctx ends (watch.Folders). Without it, and as a
	// safety net beside it, queues are looked at now and then.
	Inboxes func(ctx context.Context, folders []string, changed func(path string)) error
	// StartEvery is the least time between two starts while at least two
	// sessions are starting; 0 means a second, less than 0 none.
	StartEvery time.Duration
	// Ready, when not nil, is called once: directories are locked, orphans
	// recovered, triggers run.
	Ready func()
	// Observe, when not nil, is told of each event that is journalled. It may be
	// called with locks held: it must not block or call the Scheduler.
	Observe func(journal.Event)
	Log     *slog.Logger
	// Step is told what the run is doing, for people and machines.
	Step func(string)
}

// Scheduler is a running fleet. One lock guards all of its agents' states;
// nothing blocks while it is held but small reads of an agent's queue and
// small writes into the state directory.
type Scheduler struct {
	opt       Options
	log       *slog.Logger
	journal   *journal.Journal
	wg        sync.WaitGroup
	firing    *firing.Firing
	stopHooks *stophooks.Memory
	// recoveries is room for agents that are recovered at once.
	recoveries chan struct{}
	// published are the agents' states for readers.
	published *status.Publisher

	// One goroutine at a time changes what is run.
	changing sync.Mutex
	work     context.Context    // of everything but the sessions' end
	unwatch  context.CancelFunc // ends the watch of the inboxes
	round    int                // of lookAround

	mu       sync.Mutex
	fleet    *config.Fleet
	agents   []*agent
	slots    *slots.Slots[*agent]
	spacing  spacing
	accounts accounts
	stopping bool
	endNow   bool
	fires    int // agents whose triggers --fire has not finished
	// unfired counts triggers that --fire could not fire.
	unfired int
	quit    context.CancelCauseFunc
	ready   bool // Options.Ready was called

	glances  glances
	backlogs status.Backlogs
}

// agent is one declared agent and its actual state.
type agent struct {
	name string

	// triggers are nil until it is known who the agent is.
	triggers *firing.Triggers

	// Guarded by Scheduler.mu.
	cfg *config.Agent
	key string // names what is kept of it, for good
	// next is the definition that holds from the next session on.
	next *config.Agent
	// removed is true from the reload that removed it until its session's end.
	removed bool
	// successors wait for its name or its directory; predecessors counts those
	// that it waits for itself.
	successors   []*agent
	predecessors int
	// recovering is true while its directory is recovered after a reload.
	recovering bool
	// paused is since when a person wants nothing started, or zero; pausedBy is
	// the agent whose session asked for it instead, or "".
	paused   time.Time
	pausedBy string
	claim    *claim.Claim // its directory; nil while another one has it
	// lost is what is wrong with its directory, or "".
	lost       string
	retaking   bool // the one in its place is being locked
	inspecting bool // inspect is to be called after a while
	// folders are what its queue stands in, queued what was in it when it was
	// last looked at; folderGone is since when they are not what they were.
	folders    session.Ground
	folderGone time.Time
	queued     int
	counting   bool              // count is to be called after a while
	loss       *status.QueueLoss // that no person has taken note of
	// goesOn is until when what is queued goes on in the last conversation.
	goesOn time.Time
	// owed is how the session ended whose entry in flight could not be dealt
	// with.
	owed *session.Outcome
	// halted is the entry in flight that the service has interrupted.
	halted  *hook.Work
	stuck   *status.Stuck // while the service fails
	state   State
	moves   int         // changes of state
	empty   queue.Stamp // of the inbox, when it was found to hold nothing; or zero
	since   time.Time
	until   time.Time
	reason  string
	history history
	live    session.Live
	last    session.Report   // of the live session, or the last one
	outcome *session.Outcome // of the last session
	session string           // id of the live or last session
	account account.ID       // that it works on, or "" when that is not known
	started time.Time        // of the live or last session
	timer   *time.Timer
	turns   []span // the last ones, for ignore-own
	// yields is true when the live session was told to yield and has not begun a
	// turn instead, leaving when it was told to finish.
	yields     bool
	leaving    bool
	reclaiming bool // reclaim is to be called after a while
	// total counts over this run.
	acknowledged, deadLettered int
	failing                    []firing.Failing
}

// errFinished ends a run with Once.
var errFinished = errors.New("nothing is left to do")

// ErrShutdown is the cause with which a run ends when it was asked to.
var ErrShutdown = errors.New("asked to stop")

// errOnceTimeout ends a run with Once that took too long.
var errOnceTimeout = errors.New("once-timeout")

// New returns a Scheduler of the fleet's agents.
func New(opt Options) (*Scheduler, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Step == nil {
		opt.Step = func(string) {}
	}
	if opt.Ready == nil {
		opt.Ready = func() {}
	}
	if opt.Observe == nil {
		opt.Observe = func(journal.Event) {}
	}
	if opt.StartEvery == 0 {
		opt.StartEvery = defaultStartEvery
	}
	s := &Scheduler{
		opt: opt, log: opt.Log, fleet: opt.Fleet, stopHooks: stophooks.Of(opt.StateDir),
		recoveries: make(chan struct{}, recoveriesAtOnce()), accounts: accounts{},
		slots: slots.New[*agent](opt.Fleet.MaxSessions, opt.Fleet.Groups), published: status.NewPublisher(opt.StateDir, opt.Log),
	}
	s.firing = firing.New(firing.Options{
		StateDir: opt.StateDir, Log: opt.Log, Note: s.note, Environment: launch.Environment, Go: s.wg.Go,
	})
	for _, a := range s.chosen(opt.Fleet) {
		s.agents = append(s.agents, newAgent(a))
	}
	return s, nil
}

func newAgent(cfg *config.Agent) *agent {
	return &agent{name: cfg.Name, cfg: cfg, state: Idle, since: time.Now()}
}

// chosen returns the agents of a fleet that are to be run.
func (s *Scheduler) chosen(f *config.Fleet) []*config.Agent {
	if len(s.opt.Only) == 0 {
		return f.Agents
	}
	var chosen []*config.Agent
	for _, a := range f.Agents {
		if slices.Contains(s.opt.Only, a.Name) {
			chosen = append(chosen, a)
		}
	}
	return chosen
}

// Run runs the fleet until ctx ends or, with Once, until nothing is left to
// do. Then it lets turns finish within the fleet's shutdown-grace, unless
// EndNow is called. When it returns, no session is left.
func (s *Scheduler) Run(ctx context.Context) (*Summary, error) {
	j, err := journal.Open(s.opt.StateDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = j.Close() }()
	s.journal = j
	defer s.releaseDirectories()
	defer s.writeFiles()()
	if err := s.getReady(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return s.summary(ErrShutdown), nil // asked to stop before anything ran
		}
		return nil, err
	}

	// Work goes on in a context of its own: the end of ctx starts the end of
	// the sessions, it does not tear what they are doing.
	work, quit := context.WithCancelCause(context.WithoutCancel(ctx))
	s.begin(work, quit)
	stopOnSignal := context.AfterFunc(ctx, func() { quit(ErrShutdown) })
	defer stopOnSignal()
	if s.opt.Once {
		limit := s.opt.OnceTimeout
		if limit <= 0 {
			limit = time.Hour
		}
		timer := time.AfterFunc(limit, func() { quit(errOnceTimeout) })
		defer timer.Stop()
	}
	s.readied()
	<-work.Done()
	s.opt.Step("ending the sessions")
	s.stop()
	s.wg.Wait()
	return s.summary(context.Cause(work)), nil
}

// begin starts everything that starts something.
func (s *Scheduler) begin(work context.Context, quit context.CancelCauseFunc) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	s.work, s.quit = work, quit
	for _, a := range s.agents {
		if !a.paused.IsZero() {
			s.enterLocked(a, Held, a.pausedReason(), time.Time{})
		}
		if a.lost != "" {
			s.inspectAgainLocked(a)
		}
	}
	s.mu.Unlock()
	s.startTriggers(work)
	s.watchInboxes(work)
	s.wg.Go(func() { s.lookAround(work) })
	s.lookAtAll(func(int) bool { return true })
}

// evaluateLocked compares what an agent should do with what it does.
func (s *Scheduler) evaluateLocked(a *agent) {
	if !s.wantsWorkLocked(a) {
		return
	}
	s.foundLocked(a, queue.LookInto(a.cfg))
}

// wantsWorkLocked reports whether a session would be started for an agent that
// has something queued.
func (s *Scheduler) wantsWorkLocked(a *agent) bool {
	return !s.stopping && !a.removed && !a.expected() && !a.recovering && a.lost == "" && (a.state == Idle || a.state == Waiting)
}

// foundLocked is told what is queued for an agent that wants work.
func (s *Scheduler) foundLocked(a *agent, l queue.Look) {
	a.empty, a.queued = queue.Stamp{}, l.Depth.Entries
	if a.owed != nil {
		s.recoverLocked(a, "what was in flight was dealt with")
		return
	}
	switch {
	case l.Err != nil:
		s.failLocked(a, l.Err)
		return
	case !hasWork(l.Depth):
		if a.empty = l.Stamp; l.Depth.Tail {
			a.empty = queue.Stamp{}
			s.againLocked(a, tailCheck)
		}
		s.enterLocked(a, Idle, a.reason, time.Time{})
		s.unstuckLocked(a)
		s.declinesLocked(a)
		return
	}
	now := time.Now()
	if !s.mayLocked(a, now) {
		return
	}
	if why := s.obstacleLocked(a, now); why != "" {
		s.enterLocked(a, Waiting, why, time.Time{})
		s.askForSlotLocked()
		return
	}
	s.spacing.lastStart = now
	s.enterLocked(a, Starting, "work is queued", time.Time{})
	cfg := a.cfg
	s.wg.Go(func() { s.session(a, cfg) })
}

// hasWork reports whether a session has something to do: an entry, or one that
// goes on.
func hasWork(d inbox.Depth) bool { return d.Entries > 0 || passing(d.Failure) }

// tailCheck is when to look again at a line without its newline: a quiet
// writer's line counts after 5 seconds (inbox.Held.Next).
const tailCheck = 6 * time.Second

// againLocked looks at an idle agent again after d.
func (s *Scheduler) againLocked(a *agent, d time.Duration) {
	if a.timer != nil {
		a.timer.Stop()
	}
	cfg := a.cfg
	a.timer = time.AfterFunc(d, func() {
		if err := queue.CompleteTail(cfg); err != nil {
			s.log.Warn("cannot read the queue", "agent", a.name, "err", err)
		}
		s.noticed(a)
	})
}

// enterLocked is the one place where an agent's state changes.
func (s *Scheduler) enterLocked(a *agent, to State, reason string, until time.Time) {
	if a.state == to {
		a.until, a.reason = until, reason
		return
	}
	from := a.state
	a.moves++
	a.state, a.since, a.until, a.reason = to, time.Now(), until, reason
	s.takePlaceLocked(a, to)
	s.note(journal.Event{Agent: a.name, Kind: journal.StateChanged, From: string(from), State: string(to), Reason: foreign.Text(reason), Until: until, Session: a.session})
	s.log.Info("agent "+string(to), "agent", a.name, "why", reason)
	s.opt.Step(a.name + ": " + string(to))
	s.publishLocked(a)
	if to == Held || to == BackingOff {
		s.declinesLocked(a)
	}
}

// failLocked deals with an error of ours (a queue that cannot be read, a
// launch that failed): back-off, or a person where only one can help.
func (s *Scheduler) failLocked(a *agent, err error) {
	s.log.Error("agent failed", "agent", a.name, "err", err)
	if errors.Is(err, inbox.ErrNeedsOperator) || errors.Is(err, launch.ErrNeedsPerson) {
		s.followLocked(a, next{state: Held, reason: withHint(err)})
		return
	}
	o := session.Outcome{Detail: err.Error(), NoRoom: launch.Passes(err)}
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
	if !a.paused.IsZero() && n.state != Held {
		n = next{state: Held, reason: a.pausedReason()}
	}
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
	over := !s.stopping && !a.removed && (a.state == BackingOff || a.state == Parked) && time.Until(a.until) <= 0
	if over {
		s.enterLocked(a, Idle, "its delay is over", time.Time{})
	}
	s.mu.Unlock()
	if !over {
		return
	}
	s.noticed(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishOnceLocked()
}

func (s *Scheduler) note(e journal.Event) {
	e.At = time.Now()
	s.opt.Observe(e)
	if err := s.journal.Add(e); err != nil {
		s.log.Warn("cannot write the journal", "err", err)
	}
}
