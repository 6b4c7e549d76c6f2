// Package orchestrator brings what is declared in line with what exists, for many
// agents: it locks directories, recovers orphans, fires triggers into inboxes,
// starts a session when work is queued and a slot is free, and decides what follows
// each session's end. It acts on state: after every end it looks into the queue
// again, and never relies on having caught an event.
//
// What an agent is, and why nothing is started for it, is in room agent. This room
// has what happens to agents (happened), and what follows from it for all of them
// (conclude). The root opens no file: rooms below do, and return what they found.
package orchestrator

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// Options say what a Scheduler runs.
type Options struct {
	Fleet *config.Fleet
	// Only names the agents to run; empty means all.
	Only []string
	// Once ends the run when nothing is queued, in flight or backing off;
	// OnceTimeout is when it is asked to stop otherwise (0: an hour). No trigger
	// fires, unless Fire is set: then each of those declared at the start fires
	// once.
	Once, Fire  bool
	OnceTimeout time.Duration
	StateDir    string
	// Store is the fleet's, which the run alone writes.
	Store *store.Store
	// Ours is how a command line for this fleet begins; "": heartbeat.
	Ours string
	// RuntimeDir is where sessions have the sockets by which others join them; "":
	// nowhere.
	RuntimeDir string
	Runner     session.Runner
	// Prepare brings an agent's directory in line with its declaration and
	// returns the settings file to pass by --settings, or "".
	Prepare func(*config.Agent) (launch.Prepared, error)
	// Blocked returns a *preflight.BlockedError if it is known that no session of
	// an agent can work. Without it, this is checked when a session is started.
	Blocked func(*config.Agent) error
	// Clients says what is known of agents' clients, and tries those that are new. Without
	// it each is relied on.
	Clients Clients
	// Check runs a check of an agent's work; nil: as room proof does. Approvals has to
	// say yes, too; nil: people and rules, by the ledger.
	Check     func(context.Context, proof.Check) (proof.Result, error)
	Approvals proving.Approvals
	// Inboxes calls changed soon after a file in one of the folders changed, with
	// its path, until ctx ends (watch.Folders). Without it, and as a safety net
	// beside it, queues are checked now and then.
	Inboxes func(ctx context.Context, folders []string, changed func(path string)) error
	// StartEvery is the minimum time between two starts while at least two sessions
	// are starting; 0 means a second, less than 0 none.
	StartEvery time.Duration
	// Recovering, if not nil, is told of how many agents a start has dealt with what
	// was in flight, and of how many it will. It is called concurrently.
	Recovering func(done, of int)
	// Ready, if not nil, is called once: directories are locked, orphans recovered,
	// triggers run.
	Ready func()
	// Observe, if not nil, is called with each event that is journalled, possibly
	// with locks held: it must not block or call the Scheduler.
	Observe func(journal.Event)
	// HandedOver and Done, if not nil, are told what an agent's session was given and what
	// its outbox calls done. Done is told of some entries twice.
	HandedOver func(agent string, f *inbox.InFlight)
	Done       func(agent string, d inbox.Delivery)
	Log        *slog.Logger
	// Now is the clock that agents' states, delays and budgets follow; nil: the system's.
	Now func() time.Time
	// Grant, if not nil, does what something in an agent's session wants, and returns its answer,
	// as JSON both.
	Grant func(ctx context.Context, agent string, want json.RawMessage) json.RawMessage
	// Step is told what the run is doing, for people and machines.
	Step func(string)
}

// Scheduler is a running fleet.
type Scheduler struct {
	opt       Options
	log       *slog.Logger
	records   records
	wg        sync.WaitGroup
	firing    *firing.Firing
	desk      *proving.Desk // has the agents' work checked
	published *status.Publisher
	later     chan struct{} // says that a prompt waits for its time
	glances   glances
	consent   *consent.Keeper // asks people

	// The parts that do what blocks, without the lock: each has what only it uses.
	queues      queues
	directories directories
	orphans     orphans
	foresight   foresight
	holds       holds

	// changing is held by whoever changes what runs, or what is saved of it.
	changing sync.Mutex
	work     context.Context // of everything but the sessions' end; nil before

	mu    sync.Mutex
	fleet fleet // guarded by mu
}

// withDefaults returns the options with what is done where one is not set.
func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Recovering == nil {
		o.Recovering = func(int, int) {}
	}
	if o.Ready == nil {
		o.Ready = func() {}
	}
	if o.Observe == nil {
		o.Observe = func(journal.Event) {}
	}
	if o.HandedOver == nil {
		o.HandedOver = func(string, *inbox.InFlight) {}
	}
	if o.Done == nil {
		o.Done = func(string, inbox.Delivery) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.StartEvery == 0 {
		o.StartEvery = defaultStartEvery
	}
	return o
}

// New returns a Scheduler of the fleet's agents.
func New(opt Options) *Scheduler {
	opt = opt.withDefaults()
	s := &Scheduler{
		opt: opt, log: opt.Log,
		records:   records{opt: opt},
		published: status.NewPublisher(opt.StateDir, opt.Log), later: make(chan struct{}, 1),
		fleet: fleet{declared: opt.Fleet, locks: new(claim.Locks), spending: usage.Meters{}, line: newLine(opt.Fleet, opt.StartEvery)},
	}
	s.queues.Scheduler, s.directories.Scheduler, s.holds.Scheduler = s, s, s
	s.orphans = orphans{s, make(chan struct{}, recoveriesAtOnce())}
	s.foresight.Scheduler, s.foresight.one = s, make(chan struct{}, 1)
	s.firing = firing.New(firing.Options{
		StateDir: opt.StateDir, Store: opt.Store, Log: opt.Log, Note: s.records.note, Environment: launch.Environment, Go: s.wg.Go,
	})
	s.consent = consent.New(consent.Options{
		Store: opt.Store, Fleet: petitioners{s}, Note: s.records.note, Log: opt.Log, Go: s.wg.Go, Now: opt.Now,
	})
	if opt.Approvals == nil {
		opt.Approvals = s.consent
	}
	s.desk = proving.New(proving.Options{
		StateDir: opt.StateDir, Check: opt.Check, Approvals: opt.Approvals, Note: s.records.note, Log: opt.Log,
	})
	s.consent.Serve(s.desk)
	s.desk.Limit(opt.Fleet.MaxChecks)
	for _, a := range chosen(opt.Fleet, opt.Only) {
		s.fleet.members = append(s.fleet.members, newMember(a, opt.Now()))
	}
	return s
}
