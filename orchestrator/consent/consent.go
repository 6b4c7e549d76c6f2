// Package consent asks people on behalf of agents: it files what agents ask for, keeps
// them from working while they wait, and hands the answers over. It acts on what stands
// in the register (approval): an answer that was given without a running scheduler is
// found at the next look. It knows agents only by what Agent has, and starts none.
package consent

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/status"
)

// Standing is how an agent stands at a moment.
type Standing struct {
	Name string
	// Key names the agent permanently; requests bear it.
	Key      string
	Removed  bool
	Declared *config.Agent
	// Awaits is what it is known to wait for; nil: nothing.
	Awaits *status.Approval
	// Aside are the deliveries of its entries that are set aside.
	Aside []string
}

// Agent is what this room needs of one of the fleet's agents. Values are compared: two of
// the same agent are equal.
type Agent interface {
	Now() Standing
	// Awaits keeps the agent from working until it is called with nil.
	Awaits(*status.Approval)
	// Took takes what has become of what is set aside.
	Took(proving.Waiting)
	// IsAnswered says that an answer is where the agent finds it next, and CheckAgain
	// that a check which waits for one can go on.
	IsAnswered()
	CheckAgain()
	// Append queues a letter, and returns what has the agent begin with it; Holds reports
	// whether an entry whose id begins with prefix is queued or in flight.
	Append(ctx context.Context, cfg *config.Agent, l inbox.Letter) (begin func(), err error)
	Holds(cfg *config.Agent, prefix string) (bool, error)
}

// Fleet is the agents that there are now. Declared changes with what the file declares.
type Fleet interface {
	Agents() []Agent
	Declared() *config.Fleet
}

// Options are what a Keeper needs.
type Options struct {
	Register approval.Register
	Fleet    Fleet
	Note     func(journal.Event)
	Log      *slog.Logger
	// Go runs something beside, and is waited for at the end of the run.
	Go func(func())
}

// Keeper keeps a fleet's agents in line with the register. A look closes the gate of an
// agent that waits, and opens no directory. Whatever does is done agent by agent, in
// goroutines of their own: one that hangs delays no other.
type Keeper struct {
	opt  Options
	desk *proving.Desk
	// looking is held during a look, and guards what follows.
	looking sync.Mutex
	// The last look was into what stamp tells, for the fleet as declared; open is true
	// if requests wait or answers are owed.
	stamp    approval.Stamp
	declared *config.Fleet
	looked   time.Time
	open     bool
	tended   map[Agent]*tending
	// routed are the requests whose answers come with the next hand-over of the entry
	// in flight: nothing else can come before.
	routed map[string]bool
}

// tending is what is being done about one agent's requests.
type tending struct {
	again bool          // something has changed meanwhile
	done  chan struct{} // closed at its end
}

const (
	// lookEvery is how often it is checked whether the register has changed without a
	// hint, or what it says is of no use any more; lookAnyway how often it is read
	// whatever it looks like.
	lookEvery  = 30 * time.Second
	lookAnyway = 10 * time.Minute
	// answerPatience is how long who answers waits until the answer is queued.
	answerPatience = 2 * time.Second
	// tendPatience is how long the lock of an agent's queue is waited for; then it is
	// tried again at the next look.
	tendPatience = 20 * time.Second
)

// New returns a Keeper that Serve makes ready.
func New(opt Options) *Keeper {
	return &Keeper{opt: opt, tended: map[Agent]*tending{}, routed: map[string]bool{}}
}

// Serve tells it of the desk that checks the fleet's work, which may ask it in turn.
func (k *Keeper) Serve(desk *proving.Desk) { k.desk = desk }

// Run looks into the register now and then, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if k.mayDiffer(time.Now()) {
				k.Look(ctx)
			}
		}
	}
}

// mayDiffer reports whether a look may find something else than the last one.
func (k *Keeper) mayDiffer(now time.Time) bool {
	declared := k.opt.Fleet.Declared()
	k.looking.Lock()
	defer k.looking.Unlock()
	return k.open || k.stamp != k.opt.Register.Stamp() || k.declared != declared || now.Sub(k.looked) >= lookAnyway || now.Before(k.looked)
}

// Look brings the agents in line with the register: who waits is held at once, and goes
// on after its answer is where it finds it next.
func (k *Keeper) Look(ctx context.Context) {
	k.looking.Lock()
	defer k.looking.Unlock()
	declared := k.opt.Fleet.Declared()
	stamp := k.opt.Register.Stamp()
	waiting, open, err := k.settled(ctx)
	if err != nil {
		k.opt.Log.Warn(err.Error())
		stamp = approval.Stamp{} // it is tried again
	}
	k.stamp, k.declared, k.looked, k.open = stamp, declared, time.Now(), len(open) > 0
	maps.DeleteFunc(k.routed, func(id string, _ bool) bool {
		return !slices.ContainsFunc(open, func(r approval.Request) bool { return r.ID == id })
	})
	for _, a := range k.opt.Fleet.Agents() {
		k.lookAt(ctx, a, waiting, open)
	}
}

// settled ends the requests that nobody needs answered, gives the others the names that
// their agents have now, and returns those that are open: they wait, or their agents do not
// have the answer yet. The register is read again only if anything has changed.
func (k *Keeper) settled(ctx context.Context) (waiting, open []approval.Request, err error) {
	read := func() (done []approval.Request) {
		var err2 error
		waiting, err = k.opt.Register.Waiting()
		done, err2 = k.opt.Register.Done()
		err = errors.Join(err, err2)
		owed := slices.DeleteFunc(slices.Clone(done), func(r approval.Request) bool { return !r.Owes() })
		open = append(owed, waiting...)
		return done
	}
	now, done := time.Now(), read()
	ended, failed := k.opt.Register.SettleOf(ctx, waiting, done, k.undeclared, now)
	k.ended(ended, failed)
	early := func(r approval.Request) bool { return r.At.After(now) } // its time begins again
	if len(ended) > 0 || slices.ContainsFunc(waiting, early) {
		read()
	}
	if k.rename(ctx, open) {
		read()
	}
	return waiting, open, err
}

// lookAt is Look for one agent.
func (k *Keeper) lookAt(ctx context.Context, a Agent, waiting, open []approval.Request) {
	now := a.Now()
	mine := func(r approval.Request) bool { return r.Key == now.Key && !now.Removed }
	asks := status.ApprovalOf(waiting, func(r approval.Request) bool { return mine(r) && now.holdsUp(r) })
	owed := status.ApprovalOf(open, func(r approval.Request) bool { return mine(r) && now.holdsUp(r) && !k.routed[r.ID] })
	switch {
	case asks != nil:
		awaits(a, asks)
	case owed != nil: // it is held until its answer is queued
		if now.Awaits == nil {
			awaits(a, owed)
		}
	case k.tended[a] == nil:
		awaits(a, nil)
	}
	if slices.ContainsFunc(open, mine) || len(now.Aside) > 0 {
		k.tend(ctx, a)
	}
}

// LookIfOpen looks, if anything is open, after what may have made it needless.
func (k *Keeper) LookIfOpen(ctx context.Context) {
	k.looking.Lock()
	open := k.open
	k.looking.Unlock()
	if open {
		k.Look(ctx)
	}
}

// awaits says what an agent waits for, where that is new; nil: nothing.
func awaits(a Agent, now *status.Approval) {
	if was := a.Now().Awaits; was != now && (was == nil || now == nil || *was != *now) {
		a.Awaits(now)
	}
}

// holdsUp reports whether a request keeps its agent from working until it is answered:
// one about an entry that is set aside does not.
func (n Standing) holdsUp(r approval.Request) bool {
	return !r.Aside && (r.Entry == "" || !slices.Contains(n.Aside, r.Entry))
}
