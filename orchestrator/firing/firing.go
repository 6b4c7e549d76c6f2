// Package firing queues prompts by itself: schedules, watched files, polled commands
// and requests, with their gates, what they remember of their fires, and which of them
// fail. It knows only an agent's definition and what Agent says; what becomes of a
// queued prompt is not its concern.
package firing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
	"heartbeat/sources"
	"heartbeat/sources/watch"
)

// Agent is what triggers need of the agent that they fire for. Several goroutines
// may call its methods.
type Agent interface {
	// InTurn reports whether a session of the agent was in a turn at a time: then a
	// change in its directory is its own.
	InTurn(at time.Time) bool
	// Holds reports whether an entry whose id begins with prefix is queued or in
	// flight.
	Holds(cfg *config.Agent, prefix string) (bool, error)
	// Append queues a prompt of a trigger, and the agent starts on it once begin is
	// called. A prompt that the inbox refuses as inbox.ErrTooLarge becomes a dead
	// letter.
	Append(ctx context.Context, cfg *config.Agent, t *config.Trigger, l inbox.Letter) (begin func(), err error)
	// Down says why the agent cannot work for long, or "".
	Down() string
	// TriggersFail is called with the triggers that fail now, each time that
	// changes.
	TriggersFail([]Failing)
	// RequestsRefused is called when Triggers.RefusedRequests says something else than
	// before, but for some of the numbers. No lock of the triggers is held then.
	RequestsRefused()
}

// Options are what triggers need to fire.
type Options struct {
	StateDir string
	Store    *store.Store // has what triggers remember
	Log      *slog.Logger
	Note     func(journal.Event)
	// Environment is the environment of the commands of an agent's triggers.
	Environment func(*config.Agent) ([]string, error)
	// Go runs what lasts until the context of Start ends.
	Go func(func())
}

// Firing fires for a fleet's agents.
type Firing struct {
	opt      Options
	attempts *attempts.Book
	memories *memory.Book
	polls    chan struct{} // limits poll commands that run at once
	gates    chan struct{} // limits gates: polls that take long do not delay them

	// Triggers are started and stopped by one goroutine at a time.
	changing sync.Mutex
	table    *sources.Timetable // nil until Start
	files    *watch.Watcher
	watching bool // files runs

	webhooks webhooks
}

// maxPolls limits how many poll commands run at once.
const maxPolls = 16

// New returns a Firing in which nothing fires by itself until Start. Recall comes first.
func New(opt Options) *Firing {
	return &Firing{
		opt: opt, attempts: attempts.Of(opt.StateDir), memories: memory.NewBook(opt.Store),
		polls: make(chan struct{}, maxPolls), gates: make(chan struct{}, maxGates),
		webhooks: webhooks{room: make(chan struct{}, readAtOnce), all: map[string]*Webhook{}},
	}
}

// Recall reads what triggers remember from the runs before. Without it they would fire again
// what they have fired.
func (f *Firing) Recall(ctx context.Context) error { return f.memories.Recall(ctx) }

// Start makes triggers that are set from then on fire by themselves, until ctx
// ends.
func (f *Firing) Start(ctx context.Context) {
	f.changing.Lock()
	defer f.changing.Unlock()
	f.table, f.files = sources.NewTimetable(), watch.New()
	f.opt.Go(func() { f.table.Run(ctx) })
}

// Turn returns nil once the loop of the schedules has turned, which it does at once
// if it is alive, and also if Start was not called. It is called after that.
func (f *Firing) Turn(ctx context.Context) error {
	if f.table == nil {
		return nil
	}
	return f.table.Turn(ctx)
}

// watchFiles starts watching files once there is something to watch: the system's
// notifications are limited.
func (f *Firing) watchFiles(ctx context.Context) {
	if f.watching {
		return
	}
	f.watching = true
	f.opt.Go(func() {
		f.files.Run(ctx, func(err error) { f.opt.Log.Warn("files are checked at intervals instead", "err", err) })
	})
}

// Triggers are the triggers of one agent.
type Triggers struct {
	f     *Firing
	agent Agent
	name  string
	who   string // names what is kept of the agent, permanently

	// Guarded by Firing.changing.
	comes bool              // the agent was not declared for a while
	stops map[string]func() // :: trigger → what stops it

	mu      sync.Mutex
	keys    map[string]string // :: trigger → its permanent key
	paces   map[string]*pace  // :: trigger → how often it fires
	waiting map[string]bool   // :: trigger → its fires wait for room, which was said
	failing []Failing

	refusing sync.Mutex // guards the following; whoever holds it takes no other lock
	refused  []RefusedFires
	requests []RefusedRequests
	paused   []memory.PausedTrigger
}

// Of returns the triggers of an agent; none of them is set yet.
func (f *Firing) Of(name string, who memory.Identity, a Agent) *Triggers {
	return &Triggers{f: f, agent: a, name: name, who: who.Key, comes: who.Comes(), stops: map[string]func(){}}
}

// Set starts the triggers that cfg declares in place of those that run, and returns
// those that start over. They run until ctx ends.
func (t *Triggers) Set(ctx context.Context, cfg *config.Agent) []memory.Anew {
	t.f.changing.Lock()
	defer t.f.changing.Unlock()
	t.stop()
	t.forgetRefused()
	t.change(func([]Failing) []Failing { return nil })
	return t.start(ctx, cfg)
}

// lookAgain is how often to look whether a pause is over: the clock may be set.
const lookAgain = time.Minute

// start is Set if none runs. The caller holds Firing.changing.
func (t *Triggers) start(ctx context.Context, cfg *config.Agent) []memory.Anew {
	if t.f.table == nil {
		return nil
	}
	r := t.remember(cfg)
	t.change(func([]Failing) []Failing { return nil })
	for i := range r.all {
		t.startOne(ctx, cfg, r, i)
	}
	return r.anew
}

// startOne starts a trigger, by its position. One that is paused is started when its pause
// is over; a webhook answers meanwhile. The caller holds Firing.changing.
func (t *Triggers) startOne(ctx context.Context, cfg *config.Agent, r recollection, i int) {
	if t.f.table == nil {
		return
	}
	one, p := t.declared(cfg, i), t.pause(cfg.Triggers[i].Name)
	switch {
	case p.Since.IsZero():
		t.endPause(one.Name, r, i)
	case one.Webhook == nil && p.Until.IsZero():
		return
	case one.Webhook == nil:
		wait := min(deadline.Left(p.Until, time.Now()), lookAgain)
		t.stops[one.Name] = t.later(ctx, wait, func() { t.startOne(ctx, cfg, r, i) })
		return
	}
	stop, err := one.start(ctx, r.memory, r.all[i])
	if err != nil {
		one.doesNotRun(err)
		return
	}
	t.stops[one.Name] = stop
}

// later does something after a while, with Firing.changing held, unless it is stopped
// before. The caller holds Firing.changing.
func (t *Triggers) later(ctx context.Context, wait time.Duration, do func()) (stop func()) {
	waiting, cancel := context.WithCancel(ctx)
	t.f.opt.Go(func() {
		select {
		case <-waiting.Done():
			return
		case <-time.After(wait):
		}
		t.f.changing.Lock()
		defer t.f.changing.Unlock()
		if waiting.Err() == nil {
			do()
		}
	})
	return cancel
}

// Stop stops the triggers. A fire in progress continues.
func (t *Triggers) Stop() {
	t.f.changing.Lock()
	defer t.f.changing.Unlock()
	t.stop()
}

func (t *Triggers) stop() {
	for _, stop := range t.stops {
		stop()
	}
	clear(t.stops)
}

// trigger is one trigger of an agent, as cfg declares it.
type trigger struct {
	*config.Trigger
	of  *Triggers
	cfg *config.Agent
	// key is its permanent name: the ids of its entries begin with it.
	key string
	// pace is nil for a fire by hand.
	pace     *pace
	deferred *deferral // of a poll that runs by itself
	// byHand, of a fire by hand, ends the label of what was queued before, so that it is
	// queued again; "": the trigger fires by itself.
	byHand string
}

func (t *Triggers) declared(cfg *config.Agent, i int) trigger {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &cfg.Triggers[i]
	name := c.Name
	if c.Poll != nil && c.Poll.BacksUp != "" {
		name = c.Poll.BacksUp // what one of them has queued, the other has
	}
	key := t.keys[name]
	if key == "" {
		key = t.name + "/" + name // nothing of it was remembered
	}
	return trigger{Trigger: c, of: t, cfg: cfg, key: key, pace: t.paces[c.Name]}
}

// source names the trigger in entries, for people.
func (t trigger) source() string { return t.cfg.Name + "/" + t.Name }
