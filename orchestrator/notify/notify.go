// Package notify tells people what they have to know about a fleet. It reads what
// the scheduler says of its agents, and their queues, and decides nothing about them.
// What is told and when is room notice's; what is on its way, room outbox's; how it
// gets there, room deliver's. This room looks, keeps, and sends.
//
// Each message arrives at least once: it is on disk before it is sent, and is sent
// again until its target has answered. It arrives twice only if the answer was not
// seen; both then have the same key. A target that does not answer delays nobody
// else.
package notify

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/status"
)

// Scheduler is what is told of.
type Scheduler interface {
	Snapshot() []status.AgentState
	Backlog() []status.Backlog
	// Doors are the addresses that the run serves.
	Doors() []status.Door
	// Alive returns nil if the scheduler demonstrably lives.
	Alive(ctx context.Context) error
}

// Options say what a Watch tells of, and as whom.
type Options struct {
	Fleet    *config.Fleet
	StateDir string
	// Ours is how a command line for the fleet begins, Host the machine's name.
	Ours, Host string
	// Examine returns what doctor finds, as facts; nil: nobody asks it.
	Examine func(context.Context, *config.Fleet, Scheduler) []notice.Fact
	// Full returns which disks are full, as facts; nil: nobody looks. It may hang.
	Full func(*config.Fleet) []notice.Fact
	Log  *slog.Logger
}

// Watch follows a running fleet.
type Watch struct {
	opt   Options
	began time.Time
	kick  chan struct{}
	// turned is when the loop has last turned, in Unix nanoseconds.
	turned atomic.Int64
	file   atomic.Pointer[config.Fleet] // what counts
	answer chan answer
	// signs is what came of the last ping: its Why is "" if it has arrived, or none is to
	// be sent; nil: there was none yet.
	signs atomic.Pointer[status.Unpinged]
	// deliver is deliver.To, but in tests without a network.
	deliver func(context.Context, *config.Target, deliver.From, *outbox.Message) outbox.Verdict
	ping    func(context.Context, *config.Ping, deliver.Sign, string) error // likewise

	// Everything below belongs to the loop.
	fleet    *config.Fleet
	kept     kept
	kicked   bool
	unsaved  bool // what is kept has changed, and is not on disk
	told     bool // that it cannot be saved
	letters  letters
	sees     sees
	sending  map[string]bool // :: target → a message is on its way
	pingKept time.Time       // when it was last kept why pings fail
	noted    time.Time
	senders  sync.WaitGroup
}

// sees is what a Watch knows of the fleet from looking at it, and when it did.
type sees struct {
	looked   time.Time
	lookCost time.Duration   // of the last look
	seen     map[string]bool // the agents that were there
	happened []notice.Fact
	// findings are doctor's, disks the volumes that are full. They take a while, and
	// come by found and full.
	findings, disks []notice.Fact
	found, full     chan []notice.Fact
}

// answer is what came of an attempt to send a target its message.
type answer struct {
	target  string
	verdict outbox.Verdict
}

// New returns a Watch of a fleet that is about to run: what happens from now on is
// told.
func New(opt Options) *Watch {
	now := time.Now()
	w := &Watch{
		opt: opt, began: now, fleet: opt.Fleet, kick: make(chan struct{}, 1), answer: make(chan answer), sees: sees{found: make(chan []notice.Fact), full: make(chan []notice.Fact)},
		letters: letters{stateDir: opt.StateDir, began: now, unproven: unprovenOf(opt.StateDir, opt.Fleet.Agents)}, deliver: deliver.To, ping: deliver.Ping, sending: map[string]bool{},
	}
	w.file.Store(opt.Fleet)
	return w
}

// Observe has the Watch look soon. It is for orchestrator.Options.
func (w *Watch) Observe(journal.Event) {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Use makes another version of the fleet's file count.
func (w *Watch) Use(f *config.Fleet) {
	w.file.Store(f)
	w.Observe(journal.Event{})
}

// How often the loop looks at the fleet: after something has happened, and otherwise.
// lookShare limits what that costs: a hundredth of the time, or a twentieth while
// something happens.
const (
	leastWait = 50 * time.Millisecond
	lookSoon  = 2 * time.Second
	saveAgain = 5 * time.Second
	lookOften = 15 * time.Second
	lookShare = 100
	// lastTry is how long a run that ends still tries to tell what is on its way.
	lastTry = 5 * time.Second
)

// Run tells what is to be told until ctx ends, and then for a moment what is left; the
// rest is for the next run.
func (w *Watch) Run(ctx context.Context, s Scheduler) {
	release := w.alone(ctx)
	if release == nil {
		return
	}
	defer release()
	w.begin()
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer w.senders.Wait()
	defer stop()
	w.examine(ctx, s)
	w.lookAtDisks(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-timer.C:
		case <-w.kick:
			w.kicked = true
		case a := <-w.answer:
			w.answered(a)
		case w.sees.findings = <-w.sees.found:
			w.kicked = true
		case full := <-w.sees.full:
			w.kicked = w.kicked || len(full) != len(w.sees.disks)
			w.sees.disks = full
		}
		w.turn(beside, s)
		timer.Reset(w.wait(time.Now()))
	}
	w.end(beside, s)
}

// pause is how long after a look the next one is.
func (w *Watch) pause() time.Duration {
	if w.kicked {
		return max(lookSoon, lookShare/5*w.sees.lookCost)
	}
	return max(lookOften, lookShare*w.sees.lookCost)
}

// wait is how long there is nothing to do.
func (w *Watch) wait(now time.Time) time.Duration {
	wait := min(w.pause()-now.Sub(w.sees.looked).Abs(), watchedEvery)
	if w.unsaved {
		wait = min(wait, saveAgain)
	}
	for name, b := range w.kept.Boxes {
		if due := b.NextDue(); !due.IsZero() && !w.sending[name] && w.fleet.Targets[name] != nil {
			wait = min(wait, due.Sub(now))
		}
	}
	return max(wait, leastWait)
}

// alone waits until no other run of the fleet tells anything; nil: ctx has ended.
func (w *Watch) alone(ctx context.Context) (release func()) {
	for told := false; ; told = true {
		w.turned.Store(time.Now().UnixNano())
		unlock, err := flock.TryLock(filepath.Join(w.opt.StateDir, lockFile))
		if err == nil {
			return func() { _ = unlock() }
		}
		if !told {
			w.opt.Log.Info("this run tells nobody anything while another run of the fleet does", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookOften):
		}
	}
}

// begin takes over what an earlier run has kept.
func (w *Watch) begin() {
	var err error
	if w.kept, err = read(w.opt.StateDir); err != nil {
		w.opt.Log.Warn("cannot read which notices were sent: they are sent again", "err", err)
	}
	w.sees.happened = w.crashed()
}

// turn looks, if it is time, and sends what is due.
func (w *Watch) turn(ctx context.Context, s Scheduler) {
	now := time.Now()
	w.turned.Store(now.UnixNano())
	if f := w.file.Load(); f != w.fleet {
		w.fleet, w.kicked = f, true
		w.letters.unproven = unprovenOf(w.opt.StateDir, f.Agents)
		w.warnOfUnnamed(now)
	}
	w.watches(now, false)
	if now.Sub(w.sees.looked).Abs() >= w.pause() {
		w.lookAround(ctx, s, now)
	}
	w.save()
	w.send(ctx, now)
}

// lookAround takes in what is true and what has happened.
func (w *Watch) lookAround(ctx context.Context, s Scheduler, now time.Time) {
	w.sees.looked, w.kicked = now, false
	w.takeSigns(now)
	if len(w.fleet.Targets) == 0 {
		w.unnamed(now)
		return
	}
	if err := w.letters.refresh(now); err != nil {
		w.opt.Log.Warn("cannot read who waits for replies", "err", err)
	}
	facts := w.look(s, now)
	var got news
	for _, a := range w.fleet.Agents {
		if !w.sees.seen[a.Name] {
			continue
		}
		n, err := w.letters.look(ctx, a, &w.kept, w.opt.Ours)
		if err != nil {
			w.opt.Log.Debug("cannot read what has become of an agent's prompts", "agent", a.Name, "err", err)
		}
		got.happened, got.addressed, got.done = append(got.happened, w.linked(n.happened, nil)...), append(got.addressed, n.addressed...), append(got.done, n.done...)
	}
	ends := w.kept.Told.Ends()
	all := notice.Decide(notice.View{
		Now: now, Began: w.began, Facts: facts, Happened: append(got.happened, w.sees.happened...),
		Sees:  func(agent string) bool { return agent == "" || w.sees.seen[agent] },
		Knows: func(agent string) bool { return w.fleet.Agent(agent) != nil },
	}, w.kept.Told)
	w.unsaved = w.unsaved || !maps.Equal(ends, w.kept.Told.Ends())
	w.sees.happened = nil
	w.kicked = w.kicked || w.kept.Told.Settling()
	all = w.notTwice(all, got, now)
	w.put(append(all, got.addressed...), now)
	if w.save(); !w.unsaved {
		w.forget(got.done)
	}
	w.sees.lookCost = time.Since(now)
}

// forget removes those who no longer wait: what they waited for is on its way.
func (w *Watch) forget(done []awaited.Reply) {
	for _, r := range done {
		if err := awaited.Remove(w.opt.StateDir, r); err != nil {
			w.opt.Log.Warn("cannot forget who waited for a reply", "agent", r.Agent, "id", r.ID, "err", err)
		}
	}
}

// save writes down what is kept, if it has changed.
func (w *Watch) save() {
	if !w.unsaved {
		return
	}
	err := state.Save(filepath.Join(w.opt.StateDir, keptFile), w.kept)
	if err == nil {
		w.unsaved = false
	} else if !w.told {
		w.opt.Log.Warn("cannot record which notices were sent: after a crash some are sent twice", "err", err)
	}
	w.told = err != nil
}

// end tells what has happened last, and what is due, for a moment.
func (w *Watch) end(ctx context.Context, s Scheduler) {
	w.lookAround(ctx, s, time.Now())
	late := time.NewTimer(lastTry)
	defer late.Stop()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for w.busy(time.Now()) {
		w.send(ctx, time.Now())
		select {
		case a := <-w.answer:
			w.answered(a)
		case <-ticker.C:
		case <-late.C:
			w.watches(time.Now(), true)
			return
		}
	}
	w.watches(time.Now(), true)
}

// busy reports whether something is on its way, or due within the time that is left.
func (w *Watch) busy(now time.Time) bool {
	for name, b := range w.kept.Boxes {
		if due := b.NextDue(); w.sending[name] || w.fleet.Targets[name] != nil && !due.IsZero() && due.Sub(now) < lastTry {
			return true
		}
	}
	return false
}

// turning reports whether the loop has turned a moment ago.
func (w *Watch) turning(now time.Time) bool {
	return now.Sub(time.Unix(0, w.turned.Load())).Abs() < time.Minute
}
