// Package notify tells people what they have to know about a fleet. It reads what the
// scheduler reports about its agents, and their queues, and decides nothing about them.
// Package notice decides what is told and when, package outbox keeps what is still to be
// delivered, package deliver sends it. This package reads, saves and schedules.
//
// Each message arrives at least once: it is on disk before it is sent, and is sent again
// until its target has answered. It arrives twice only if the answer got lost; both copies
// then have the same key. A target that does not answer delays no other target.
package notify

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// Scheduler is the run that people are told about.
type Scheduler interface {
	Snapshot() []status.AgentState
	Backlog() []status.Backlog
	// Doors are the addresses that the run serves.
	Doors() []status.Door
	StoreTroubles() []store.Trouble
	// Alive returns nil if the scheduler demonstrably works.
	Alive(ctx context.Context) error
}

// Options say which fleet a Watch tells about, and how it names itself.
type Options struct {
	Fleet    *config.Fleet
	StateDir string
	// Ours is how a command line for the fleet begins, Host the machine's name.
	Ours, Host string
	// Examine returns doctor's findings as facts; nil: they are not looked for.
	Examine func(context.Context, *config.Fleet, Scheduler) []notice.Fact
	// Full returns the full disks as facts; nil: they are not looked for. It may hang.
	Full func(*config.Fleet) []notice.Fact
	Log  *slog.Logger
	// Store is the run's.
	Store *store.Store
}

// Watch follows a running fleet and tells people about it.
type Watch struct {
	opt      Options
	attempts *attempts.Book // which commands run
	began    time.Time
	kick     chan struct{}
	// turned is when the loop began its last turn, in Unix nanoseconds.
	turned atomic.Int64
	file   atomic.Pointer[config.Fleet] // the version in force
	answer chan answer
	// found and full bring what sees.findings and sees.disks are: both take a while to find.
	found, full chan []notice.Fact
	// signs is the outcome of the last ping. Its Why is "" if the ping has arrived, or none
	// is to be sent; nil: no ping was sent yet.
	signs atomic.Pointer[status.Unpinged]
	// deliver is deliver.To; tests replace it.
	deliver func(context.Context, *config.Target, deliver.From, *outbox.Message) outbox.Verdict
	ping    func(context.Context, *config.Ping, deliver.Sign, string) error // deliver.Ping, likewise

	// Everything below belongs to the loop.
	fleet    *config.Fleet
	book     *memo.Book
	kept     *memo.State
	kicked   bool
	unsaved  bool // kept has changes that are not on disk
	told     bool // the log has it that kept cannot be saved
	letters  letters
	sees     sees
	sending  map[string]bool // :: target → a message is on its way
	pingKept time.Time       // when the reason for failing pings was last saved
	senders  sync.WaitGroup
}

// sees is what a Watch saw when it last looked at the fleet.
type sees struct {
	looked   time.Time
	lookCost time.Duration   // of the last look
	seen     map[string]bool // the agents whose state was seen
	happened []notice.Fact
	// findings are doctor's, disks the full volumes.
	findings, disks []notice.Fact
}

// answer is the outcome of an attempt to send a target its message.
type answer struct {
	target  string
	verdict outbox.Verdict
}

// New returns a Watch for a fleet that is about to run. It tells what happens from now on.
func New(opt Options) *Watch {
	now := time.Now()
	w := &Watch{
		opt: opt, attempts: attempts.Of(opt.StateDir), began: now, fleet: opt.Fleet, kick: make(chan struct{}, 1), answer: make(chan answer), found: make(chan []notice.Fact), full: make(chan []notice.Fact),
		letters: letters{store: opt.Store, began: now, unproven: unprovenOf(opt.StateDir, opt.Fleet.Agents)}, deliver: deliver.To, ping: deliver.Ping, sending: map[string]bool{},
	}
	w.file.Store(opt.Fleet)
	return w
}

// Observe makes the Watch look soon. It is for orchestrator.Options.
func (w *Watch) Observe(journal.Event) {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Use puts another version of the fleet's file in force.
func (w *Watch) Use(f *config.Fleet) {
	w.file.Store(f)
	w.Observe(journal.Event{})
}

// How often the loop looks at the fleet: soon after an event, and otherwise. lookShare
// limits the cost to a hundredth of the time, or a twentieth after events.
const (
	leastWait = 50 * time.Millisecond
	lookSoon  = 2 * time.Second
	saveAgain = 5 * time.Second
	lookOften = 15 * time.Second
	lookShare = 100
	// turnsWithin is how long the loop waits at most.
	turnsWithin = 30 * time.Second
	// lastTry is how long an ending run still tries to deliver what it has.
	lastTry = 5 * time.Second
)

// Run tells people what happens until ctx ends. Then it tries for lastTry to deliver what is
// left; the next run delivers the rest.
func (w *Watch) Run(ctx context.Context, s Scheduler) {
	w.turned.Store(time.Now().UnixNano())
	w.begin(context.WithoutCancel(ctx)) // a run may end at once, and what it cannot read would be told again
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
		case w.sees.findings = <-w.found:
			w.kicked = true
		case full := <-w.full:
			w.kicked = w.kicked || len(full) != len(w.sees.disks)
			w.sees.disks = full
		}
		w.turn(beside, s)
		timer.Reset(w.wait(time.Now()))
	}
	w.end(beside, s)
}

// pause is the time between two looks at the fleet.
func (w *Watch) pause() time.Duration {
	if w.kicked {
		return max(lookSoon, lookShare/5*w.sees.lookCost)
	}
	return max(lookOften, lookShare*w.sees.lookCost)
}

// wait is the time until there is something to do.
func (w *Watch) wait(now time.Time) time.Duration {
	wait := min(w.pause()-now.Sub(w.sees.looked).Abs(), turnsWithin)
	if w.unsaved {
		wait = min(wait, saveAgain)
	}
	for name, b := range w.kept.Boxes {
		if due := b.NextDue(); !due.IsZero() && !w.sending[name] && w.fleet.Targets[name] != nil {
			wait = min(wait, deadline.Left(due, now))
		}
	}
	return max(wait, leastWait)
}

// begin loads the state of an earlier run.
func (w *Watch) begin(ctx context.Context) {
	var err error
	if w.book, w.kept, err = memo.Open(ctx, w.opt.Store, time.Now()); err != nil {
		w.opt.Log.Warn("cannot read which notices were sent: they are sent again", "err", err)
	}
	w.sees.happened = w.crashed()
}

// turn looks at the fleet if it is time to, and sends what is due.
func (w *Watch) turn(ctx context.Context, s Scheduler) {
	now := time.Now()
	w.turned.Store(now.UnixNano())
	if f := w.file.Load(); f != w.fleet {
		w.fleet, w.kicked = f, true
		w.letters.unproven = unprovenOf(w.opt.StateDir, f.Agents)
		w.warnOfUnnamed(now)
	}
	if now.Sub(w.sees.looked).Abs() >= w.pause() {
		w.lookAround(ctx, s, now)
	}
	w.save()
	w.send(ctx, now)
}

// lookAround collects the facts about the fleet and what has happened, and queues the
// notices that follow.
func (w *Watch) lookAround(ctx context.Context, s Scheduler, now time.Time) {
	w.sees.looked, w.kicked = now, false
	w.takeSigns(now)
	if len(w.fleet.Targets) == 0 {
		w.unnamed(now)
		return
	}
	if err := w.letters.refresh(ctx, now); err != nil {
		w.opt.Log.Warn("cannot read who waits for replies", "err", err)
	}
	facts := w.look(s, now)
	var got news
	for _, a := range w.fleet.Agents {
		if !w.sees.seen[a.Name] {
			continue
		}
		n, err := w.letters.look(ctx, a, w.kept, w.opt.Ours)
		if err != nil {
			w.opt.Log.Debug("cannot read what has become of an agent's prompts", "agent", a.Name, "err", err)
		}
		got.happened, got.addressed, got.done = append(got.happened, w.linked(n.happened, nil)...), append(got.addressed, n.addressed...), append(got.done, n.done...)
	}
	ends := w.kept.Told.Ends()
	all := notice.Decide(notice.View{
		Now: now, Began: w.began, Facts: facts, Happened: append(got.happened, w.sees.happened...),
		Sees:  func(agent string) bool { return agent == "" || w.sees.seen[agent] },
		Knows: func(agent string) bool { return w.fleet.Agent(agent) != nil }, Stands: w.stands(ctx),
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

// forget removes replies from the list of awaited ones: their messages are saved.
func (w *Watch) forget(done []awaited.Reply) {
	if len(done) == 0 {
		return
	}
	w.opt.Store.Keep(fmt.Sprintf("that the reply to prompt %q of agent %q is on its way to %s", done[0].ID, done[0].Agent, done[0].Target), func() error {
		return w.opt.Store.Write(context.Background(), func(c *store.Change) error {
			for _, r := range done {
				if _, err := (awaited.Order{Reply: r, Ends: true}).Do(c); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// save saves kept if it has changed.
func (w *Watch) save() {
	if !w.unsaved {
		return
	}
	err := w.book.Save(context.Background(), w.kept)
	if err == nil {
		w.unsaved = false
	} else if !w.told {
		w.opt.Log.Warn("cannot record which notices were sent: after a crash some are sent twice", "err", err)
	}
	w.told = err != nil
}

// end looks a last time and delivers what is due, for at most lastTry.
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
			return
		}
	}
}

// busy reports whether a message is being sent, or is due within the time that is left.
func (w *Watch) busy(now time.Time) bool {
	for name, b := range w.kept.Boxes {
		if due := b.NextDue(); w.sending[name] || w.fleet.Targets[name] != nil && !due.IsZero() && deadline.Left(due, now) < lastTry {
			return true
		}
	}
	return false
}

// turning reports whether the loop has made a turn lately.
func (w *Watch) turning(now time.Time) bool {
	return now.Sub(time.Unix(0, w.turned.Load())).Abs() < 2*turnsWithin
}
