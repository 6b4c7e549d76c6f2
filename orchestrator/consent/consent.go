// Package consent asks people on behalf of agents: it files the agents' requests, keeps
// agents from working while they wait, and hands the answers over. It acts on what is kept
// (package approval), so that an answer that was given while no scheduler ran is found at
// the next look. It knows agents only through the interface Agent, and starts none.
package consent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// Standing is the state of an agent at a moment, as far as requests are concerned.
type Standing struct {
	Name string
	// Key names the agent permanently, also in requests.
	Key      string
	Removed  bool
	Declared *config.Agent
	// Awaits is the request that the agent waits for; nil: none.
	Awaits *status.Approval
	// Aside are the delivery ids of its entries that are set aside, and AwaitsAside the first
	// of the requests that keep it from nothing; nil: none.
	Aside       []string
	AwaitsAside *status.Approval
}

// Agent is what this package needs of one of the fleet's agents. Values are compared: two
// values for the same agent must be equal.
type Agent interface {
	Now() Standing
	// Awaits keeps the agent from working until Awaits is called with nil.
	Awaits(*status.Approval)
	// AwaitsAside says which request waits while the agent works on; nil: none.
	AwaitsAside(*status.Approval)
	// Took is told what has become of entries that were set aside, Tended whether its
	// requests and those entries could be handled.
	Took(proving.Waiting)
	Tended(error)
	// IsAnswered tells the agent that an answer is queued for it, CheckAgain that the
	// check which waits for an answer can continue.
	IsAnswered()
	CheckAgain()
	// Append queues a letter, and returns a function that makes the agent begin with it.
	// Holds reports whether an entry whose id begins with prefix is queued or in flight.
	Append(ctx context.Context, cfg *config.Agent, l inbox.Letter) (begin func(), err error)
	Holds(cfg *config.Agent, prefix string) (bool, error)
}

// Fleet gives the present agents. Declared returns another value when the file's
// declarations change.
type Fleet interface {
	Agents() []Agent
	Declared() *config.Fleet
}

// Options are what a Keeper needs.
type Options struct {
	Store *store.Store
	Fleet Fleet
	Note  func(journal.Event)
	Log   *slog.Logger
	// Go runs a function in a goroutine that the end of the run waits for.
	Go func(func())
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

// Keeper keeps a fleet's agents in line with what they have asked for. A look stops agents that wait,
// without opening a directory. Work in an agent's directory is done in a goroutine of that
// agent, so that one that hangs delays no other.
type Keeper struct {
	opt     Options
	desk    *proving.Desk
	changes atomic.Uint64
	// looking is held during a look, and guards what follows.
	looking sync.Mutex
	// seen and declared are Changes and the fleet as the last look found them. open is true if
	// requests wait or answers are owed, again if something could not be read or done.
	seen        uint64
	declared    *config.Fleet
	open, again bool
	unread      string // what the last look could not read, and has told
	tended      map[Agent]*tending
	// routed are the requests whose answers come with the next hand-over of the entry in
	// flight. Nothing else can be handed over before.
	routed map[string]bool
	// ends are when the requests that wait end at the latest, by their ids; see bound.
	ends map[string]time.Time
}

// tending is the work on one agent's requests that is in progress.
type tending struct {
	again bool          // it has to be done once more, because something has changed
	done  chan struct{} // closed when it ends
}

const (
	// lookEvery is how often to look whether requests have ended.
	lookEvery = 30 * time.Second
	// answerPatience is how long Answer waits until the answer is queued.
	answerPatience = 2 * time.Second
	// tendPatience is how long to wait for the lock of an agent's queue before it is left
	// to the next look.
	tendPatience = 20 * time.Second
)

// New returns a Keeper. Call Serve before using it.
func New(opt Options) *Keeper {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Keeper{opt: opt, tended: map[Agent]*tending{}, routed: map[string]bool{}}
}

// Serve sets the desk that checks the fleet's work, which may ask the Keeper in turn.
func (k *Keeper) Serve(desk *proving.Desk) { k.desk = desk }

// Run looks from time to time until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
			if k.mayDiffer() {
				k.Look(ctx)
			}
		}
	}
}

// mayDiffer reports whether a look may find something that the last one did not.
func (k *Keeper) mayDiffer() bool {
	declared := k.opt.Fleet.Declared()
	k.looking.Lock()
	defer k.looking.Unlock()
	return k.open || k.again || k.seen != k.Changes() || k.declared != declared
}

// Changes is how often what agents ask for has changed in this run.
func (k *Keeper) Changes() uint64 { return k.changes.Load() }

// change changes what agents ask for. act is that of store.Write.
func (k *Keeper) change(ctx context.Context, act func(*store.Change) error) error {
	err := k.opt.Store.Write(ctx, act)
	k.changes.Add(1) // with an error, too: it may be changed
	return err
}

// Look brings the agents in line with what they ask for: an agent that waits is stopped at
// once, and continues when its answer is queued for it.
func (k *Keeper) Look(ctx context.Context) {
	k.looking.Lock()
	defer k.looking.Unlock()
	declared, seen := k.opt.Fleet.Declared(), k.Changes()
	waiting, open, err := k.settled(ctx)
	was := k.unread
	if k.unread = ""; err != nil {
		k.unread = err.Error()
	}
	if k.unread != "" && k.unread != was {
		k.opt.Log.Warn(k.unread)
	}
	k.seen, k.declared, k.open, k.again = seen, declared, len(open) > 0, err != nil
	maps.DeleteFunc(k.routed, func(id string, _ bool) bool {
		return !slices.ContainsFunc(open, func(r approval.Request) bool { return r.ID == id })
	})
	for _, a := range k.opt.Fleet.Agents() {
		k.lookAt(ctx, a, waiting, open)
	}
}

// settled ends the requests that need no answer, updates agents' names in the others, and
// returns the open ones: those that wait, and those whose answer the agent does not have
// yet. It reads them again only if it has changed something.
func (k *Keeper) settled(ctx context.Context) (waiting, open []approval.Request, err error) {
	now := k.opt.Now()
	read := func() (owed []approval.Request) {
		waiting, owed, err = k.read(ctx)
		k.bound(waiting, now)
		open = slices.Concat(owed, waiting)
		return owed
	}
	owed := read()
	ends := approval.Ends(waiting, owed, k.undeclared(), now)
	if _ = k.end(ctx, ends, now); len(ends) > 0 { // it is logged
		read()
	}
	if k.rename(ctx, open) {
		read()
	}
	return waiting, open, err
}

// read returns the requests that wait, and those whose answer is owed.
func (k *Keeper) read(ctx context.Context) (waiting, owed []approval.Request, err error) {
	err = k.opt.Store.Read(ctx, func(v *store.View) error {
		if waiting, err = approval.Waiting(v); err == nil {
			owed, err = approval.Owed(v)
		}
		return err
	})
	return waiting, owed, err
}

// bound has requests end no later than was to be when this run first saw them, wherever the
// clock is set meanwhile.
func (k *Keeper) bound(waiting []approval.Request, now time.Time) {
	ends := map[string]time.Time{}
	for i := range waiting {
		r := &waiting[i]
		end, seen := k.ends[r.ID]
		if !seen {
			end = deadline.On(r.Until, now, approval.Lasts)
		}
		if ends[r.ID] = end; r.Until.Sub(now.Round(0)) > deadline.Left(end, now)+time.Second {
			r.Until = deadline.Shown(end, now)
		}
	}
	k.ends = ends
}

// lookAt brings one agent in line with what was asked.
func (k *Keeper) lookAt(ctx context.Context, a Agent, waiting, open []approval.Request) {
	now := a.Now()
	mine := func(r approval.Request) bool { return r.Key == now.Key && !now.Removed }
	asks := status.ApprovalOf(waiting, func(r approval.Request) bool { return mine(r) && now.holdsUp(r) })
	aside := status.ApprovalOf(waiting, func(r approval.Request) bool { return mine(r) && !now.holdsUp(r) })
	if !same(now.AwaitsAside, aside) {
		a.AwaitsAside(aside)
	}
	owed := status.ApprovalOf(open, func(r approval.Request) bool { return mine(r) && now.holdsUp(r) && !k.routed[r.ID] })
	switch {
	case asks != nil:
		awaits(a, asks)
	case owed != nil: // stopped until its answer is queued
		if now.Awaits == nil {
			awaits(a, owed)
		}
	case k.tended[a] == nil:
		awaits(a, nil)
	}
	if slices.ContainsFunc(open, mine) || len(now.Aside) > 0 {
		k.tend(ctx, a)
	} else {
		a.Tended(nil)
	}
}

// LookIfOpen looks if requests are open, after an event that may have made some needless.
func (k *Keeper) LookIfOpen(ctx context.Context) {
	k.looking.Lock()
	open := k.open
	k.looking.Unlock()
	if open {
		k.Look(ctx)
	}
}

// awaits tells an agent what it waits for, if that has changed; nil: nothing.
func awaits(a Agent, now *status.Approval) {
	if !same(a.Now().Awaits, now) {
		a.Awaits(now)
	}
}

func same(was, now *status.Approval) bool {
	return was == now || was != nil && now != nil && *was == *now
}

// holdsUp reports whether a request keeps its agent from working until it is answered.
func (n Standing) holdsUp(r approval.Request) bool { return r.HoldsUp(n.Aside) }
