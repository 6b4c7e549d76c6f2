// Package firing is what queues prompts by itself: schedules, watched files and
// polled commands, with their gates, what they remember of their fires, and
// which of them fail. Of an agent it knows its definition and what Agent says;
// what becomes of a prompt that is queued is not its concern.
package firing

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/state"
	"heartbeat/sources"
	"heartbeat/sources/watch"
)

// Agent is what triggers need of the agent that they fire for. Its methods may
// be called from several goroutines.
type Agent interface {
	// InTurn reports whether a session of the agent was in a turn at a time: what
	// changes in its directory then is its own doing.
	InTurn(at time.Time) bool
	// Holds reports whether an entry whose id begins with prefix is queued or in
	// flight.
	Holds(cfg *config.Agent, prefix string) (bool, error)
	// Append queues a prompt, with which the agent begins once begin is called.
	// What the inbox refuses as inbox.ErrTooLarge is a dead letter.
	Append(ctx context.Context, cfg *config.Agent, l inbox.Letter) (begin func(), err error)
	// TriggersFail is told which triggers fail now, each time that changes.
	TriggersFail([]Failing)
}

// Options say with what triggers fire.
type Options struct {
	StateDir string
	Log      *slog.Logger
	Note     func(journal.Event)
	// Environment is what the commands of an agent's triggers get.
	Environment func(*config.Agent) ([]string, error)
	// Go runs what lasts until the context of Start ends.
	Go func(func())
}

// Firing is what fires for a fleet's agents.
type Firing struct {
	opt Options
	// records writes what triggers remember.
	records *state.Behind
	polls   chan struct{} // room for poll commands that run at once
	gates   chan struct{} // room for gates: polls that take long do not hold them up

	// Triggers are started and stopped by one goroutine at a time.
	changing sync.Mutex
	table    *sources.Timetable // nil until Start
	files    *watch.Watcher
	watching bool                     // files runs
	memories map[string]*memory.Agent // :: key of an agent → what its triggers remember
}

// maxPolls bounds how many poll commands run at once.
const maxPolls = 16

// recordDelay is how long after a fire its time is kept. A crash meanwhile
// makes the next run offer the same label once more, and the inbox refuses it.
const recordDelay = time.Second

// New returns a Firing in which nothing fires by itself until Start.
func New(opt Options) *Firing {
	return &Firing{
		opt: opt, records: state.NewBehind(recordDelay), memories: map[string]*memory.Agent{},
		polls: make(chan struct{}, maxPolls), gates: make(chan struct{}, maxGates),
	}
}

// Record writes what triggers remember until ctx ends, and then what is left.
func (f *Firing) Record(ctx context.Context) { f.records.Run(ctx) }

// Start lets triggers that are set from then on fire by themselves, until ctx
// ends.
func (f *Firing) Start(ctx context.Context) {
	f.changing.Lock()
	defer f.changing.Unlock()
	f.table, f.files = sources.NewTimetable(), watch.New()
	f.opt.Go(func() { f.table.Run(ctx) })
}

// Turn returns nil once the loop of the schedules has turned, which it does at
// once when it lives, and where Start was not called. It is called after that.
func (f *Firing) Turn(ctx context.Context) error {
	if f.table == nil {
		return nil
	}
	return f.table.Turn(ctx)
}

// watchFiles runs the watch of files once there is something to watch: the
// system's notifications are few.
func (f *Firing) watchFiles(ctx context.Context) {
	if f.watching {
		return
	}
	f.watching = true
	f.opt.Go(func() {
		f.files.Run(ctx, func(err error) { f.opt.Log.Warn("files are looked at now and then instead", "err", err) })
	})
}

// Triggers are those of one agent.
type Triggers struct {
	f     *Firing
	agent Agent
	name  string
	who   string // names what is kept of the agent, for good

	// Guarded by Firing.changing.
	comes bool // the agent was not declared for a while
	stops []func()

	mu      sync.Mutex
	keys    map[string]string // :: trigger → what names that for good
	failing []Failing
}

// Of returns the triggers of an agent, none of which is set yet.
func (f *Firing) Of(name string, who memory.Identity, a Agent) *Triggers {
	return &Triggers{f: f, agent: a, name: name, who: who.Key, comes: who.Comes()}
}

// Set starts the triggers that cfg declares in place of those that run, and
// returns those that begin anew. They run until ctx ends.
func (t *Triggers) Set(ctx context.Context, cfg *config.Agent) []memory.Anew {
	t.f.changing.Lock()
	defer t.f.changing.Unlock()
	t.stop()
	t.change(func([]Failing) []Failing { return nil })
	return t.start(ctx, cfg)
}

// setAgain is after which time triggers are started again whose memory could not
// be read.
const setAgain = time.Minute

// start is Set where none runs. The caller holds Firing.changing.
func (t *Triggers) start(ctx context.Context, cfg *config.Agent) []memory.Anew {
	if t.f.table == nil {
		return nil
	}
	r, err := t.remember(cfg)
	if err != nil {
		for i := range cfg.Triggers {
			t.declared(cfg, i).failed(fmt.Errorf("it does not run: %w", err), setAgain)
		}
		t.startAgain(ctx, cfg)
		return nil
	}
	t.change(func([]Failing) []Failing { return nil })
	for i := range r.all {
		one := t.declared(cfg, i)
		stop, err := one.start(ctx, r.memory, r.all[i])
		if err != nil {
			one.doesNotRun(err)
			continue
		}
		t.stops = append(t.stops, stop)
	}
	return r.anew
}

// startAgain starts the triggers after a while, unless they are set or stopped
// before. The caller holds Firing.changing.
func (t *Triggers) startAgain(ctx context.Context, cfg *config.Agent) {
	waiting, cancel := context.WithCancel(ctx)
	t.stops = append(t.stops, cancel)
	t.f.opt.Go(func() {
		select {
		case <-waiting.Done():
			return
		case <-time.After(setAgain):
		}
		t.f.changing.Lock()
		defer t.f.changing.Unlock()
		if waiting.Err() == nil {
			t.stop()
			t.start(ctx, cfg)
		}
	})
}

// Stop stops the triggers. A fire that is under way goes on.
func (t *Triggers) Stop() {
	t.f.changing.Lock()
	defer t.f.changing.Unlock()
	t.stop()
}

func (t *Triggers) stop() {
	for _, stop := range t.stops {
		stop()
	}
	t.stops = nil
}

// trigger is one trigger of an agent, as cfg declares it.
type trigger struct {
	*config.Trigger
	of  *Triggers
	cfg *config.Agent
	// key names it for good: the ids of its entries begin with it.
	key string
}

func (t *Triggers) declared(cfg *config.Agent, i int) trigger {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &cfg.Triggers[i]
	key := t.keys[c.Name]
	if key == "" {
		key = t.name + "/" + c.Name // nothing of it was remembered
	}
	return trigger{c, t, cfg, key}
}

// source names the trigger in entries, for people.
func (t trigger) source() string { return t.cfg.Name + "/" + t.Name }
