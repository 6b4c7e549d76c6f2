package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
)

// The states, as tests write them.
const (
	Idle       = status.Idle
	Waiting    = status.Waiting
	Starting   = status.Starting
	Running    = status.Running
	BackingOff = status.BackingOff
	Parked     = status.Parked
	Held       = status.Held
)

// act is what a session of the rig does from its start to its end.
type act func(f *fakeSession) session.Outcome

// rig is a scheduler over real files with sessions that need no process. Time
// is that of a synctest bubble.
type rig struct {
	t     *testing.T
	dir   string
	fleet *config.Fleet
	opt   Options
	s     *Scheduler

	mu     sync.Mutex
	acts   map[string]act // by agent; "" for all others
	starts []start
	live   int
	most   int // sessions that lived at once
	// unstartable is why no session can be started, or nil.
	unstartable error
	// costs is what each entry costs: it is told with the next hand-over.
	costs usage.Sum
	// rough has directories go under sessions that live: what these cannot do
	// there is no fault.
	rough bool
	// changed is told of what is sent, as by the system's notifications.
	changed func(path string)
}

type start struct {
	agent string
	at    time.Time
}

// newRig declares agents by their names in a directory of their own. Prepare
// the fleet before run.
func newRig(t *testing.T, names ...string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, acts: map[string]act{"": drains}}
	r.fleet = &config.Fleet{Name: "fleet", Path: filepath.Join(dir, "heartbeat.yaml"), MaxSessions: 4}
	for _, name := range names {
		r.fleet.Agents = append(r.fleet.Agents, r.declare(name))
	}
	return r
}

// inBubble is a test of a fleet of agents, named with blanks between them, whose
// clock is the test's (testing/synctest). Their directory is made outside of it.
func inBubble(t *testing.T, names string, do func(t *testing.T, r *rig)) {
	t.Helper()
	r := newRig(t, strings.Fields(names)...)
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		do(t, r)
	})
}

// declare is an agent with the defaults of config.
func (r *rig) declare(name string) *config.Agent {
	dir := filepath.Join(r.dir, name)
	home := filepath.Join(dir, ".heartbeat")
	return &config.Agent{
		Name: name, Dir: dir, Home: home, Inbox: filepath.Join(home, "inbox.jsonl"), Command: []string{"claude"},
		Mode: hook.Drain, OnIdle: hook.IdleRelease, OnOrphan: inbox.DeadLetter, MaxAttempts: config.DefaultMaxAttempts,
		MaxRestarts: config.DefaultMaxRestarts, RestartWindow: config.DefaultRestartWindow, MaxEntry: config.DefaultMaxEntry,
		Timeout: config.DefaultTimeout,
	}
}

// send queues prompts.
func (r *rig) send(agent string, n int) {
	r.t.Helper()
	r.mkdir(r.declare(agent).Home)
	q, err := queue.Open(r.declare(agent))
	if err != nil {
		r.t.Fatal(err)
	}
	defer q.Close()
	for i := range n {
		if _, err := q.Append(r.t.Context(), inbox.Letter{Source: "send", Prompt: fmt.Sprintf("do %d", i)}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.tell(agent)
}

// tell notifies of a change of an agent's inbox.
func (r *rig) tell(agent string) {
	r.mu.Lock()
	changed := r.changed
	r.mu.Unlock()
	if changed != nil {
		changed(r.declare(agent).Inbox)
	}
}

// notify stands in for the system's notifications.
func (r *rig) notify(ctx context.Context, _ []string, changed func(string)) error {
	if ctx.Err() != nil {
		return nil // a later watch has taken its place before it began
	}
	r.mu.Lock()
	r.changed = changed
	r.mu.Unlock()
	<-ctx.Done()
	return nil
}

// run starts the scheduler and returns what ends it and waits for it.
func (r *rig) run() (stop func() *status.Summary) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	done := r.start(ctx)
	return func() *status.Summary {
		cancel()
		return <-done
	}
}

// start starts the scheduler; the channel gets the summary at its end.
func (r *rig) start(ctx context.Context) <-chan *status.Summary {
	r.t.Helper()
	opt := r.opt
	opt.Fleet, opt.StateDir, opt.Runner = r.fleet, filepath.Join(r.dir, "state"), r
	if opt.Inboxes == nil {
		opt.Inboxes = r.notify
	}
	if opt.Prepare == nil {
		opt.Prepare = func(*config.Agent) (launch.Prepared, error) { return launch.Prepared{}, nil }
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.NewTextHandler(r.t.Output(), nil))
	}
	ready := make(chan struct{})
	opt.Ready = func() { close(ready) }
	r.mkdir(opt.StateDir)
	var closeStore func()
	opt.Store, closeStore = storetest.Open(r.t, opt.StateDir)
	r.opt.Store = opt.Store
	s := New(opt)
	r.s = s
	done := make(chan *status.Summary, 1)
	go func() {
		sum, err := s.Run(ctx)
		closeStore()
		if err != nil {
			r.t.Errorf("Run: %v", err)
			close(ready)
		}
		done <- sum
	}()
	<-ready
	return done
}

// sleep lets time pass, and then everything settle that it woke.
func (r *rig) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) state(agent string) status.AgentState {
	r.t.Helper()
	for _, a := range r.s.Snapshot() {
		if a.Agent == agent {
			return a
		}
	}
	r.t.Fatalf("agent %q is not run", agent)
	return status.AgentState{}
}

func (r *rig) want(agent string, want status.State) {
	r.t.Helper()
	if got := r.state(agent); got.State != want {
		r.t.Errorf("%s is %s (%s), want %s", agent, got.State, got.Reason, want)
	}
}

// started returns the times of an agent's starts; of all agents' for "".
func (r *rig) started(agent string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var at []time.Time
	for _, s := range r.starts {
		if agent == "" || s.agent == agent {
			at = append(at, s.at)
		}
	}
	return at
}

// order returns the agents in the order of their starts.
func (r *rig) order() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, s := range r.starts {
		names = append(names, s.agent)
	}
	return names
}

func (r *rig) set(agent string, a act) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts[agent] = a
}

// Start implements Runner.
func (r *rig) Start(_ context.Context, spec session.Spec) (session.Live, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unstartable != nil {
		return nil, r.unstartable
	}
	r.starts = append(r.starts, start{spec.Agent, time.Now()})
	r.live++
	r.most = max(r.most, r.live)
	a := r.acts[spec.Agent]
	if a == nil {
		a = r.acts[""]
	}
	f := &fakeSession{r: r, spec: spec, reports: make(chan session.Report, 64), orders: make(chan session.Order, 64)}
	go func() {
		o := a(f)
		r.mu.Lock()
		r.live--
		r.mu.Unlock()
		o.Acknowledged = f.acknowledged
		f.reports <- session.Report{At: time.Now(), Phase: hook.Ended, Acknowledged: o.Acknowledged, Outcome: &o, Spent: f.spent}
		close(f.reports)
	}()
	return f, nil
}

// fakeSession is a session without a process.
type fakeSession struct {
	r            *rig
	spec         session.Spec
	reports      chan session.Report
	orders       chan session.Order
	acknowledged int
	spent        usage.Sum
	given        string // the last delivery
	// abrupt has work prove nothing of an entry that is fatal.
	abrupt bool
}

func (f *fakeSession) Reports() <-chan session.Report { return f.reports }
func (f *fakeSession) Order(o session.Order) {
	if !o.Queued && !o.Moved { // it looks by itself
		f.orders <- o
	}
}

func (f *fakeSession) say(p hook.Phase) {
	f.reports <- session.Report{At: time.Now(), Phase: p, Acknowledged: f.acknowledged, Spent: f.spent}
}

// take does the next entry as a client does, in d. It returns false when
// nothing is queued. An order to stop breaks it off.
func (f *fakeSession) take(d time.Duration) bool { return f.work(d, "") }

// work is take; one that is given fatal gets no further than to take an entry
// that contains it, and returns false.
func (f *fakeSession) work(d time.Duration, fatal string) bool {
	var e *inbox.Entry
	err := f.queue(func(q *inbox.Held) (err error) {
		if e, err = q.Next(); err == nil {
			_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session})
			f.given = e.DeliveryID
		}
		if err == nil && !(f.abrupt && strings.Contains(e.Prompt, fatal)) {
			_, err = q.Advance(inbox.Taken, "")
		}
		return err
	})
	if err != nil {
		if !errors.Is(err, inbox.ErrEmpty) && (!f.r.rough || errors.Is(err, inbox.ErrInFlight)) {
			f.r.t.Error(err)
		}
		return false
	}
	f.say(hook.Turn)
	if fatal != "" && strings.Contains(e.Prompt, fatal) {
		return false
	}
	time.Sleep(d)
	err = f.queue(func(q *inbox.Held) error {
		_, err := q.Acknowledge(inbox.Acknowledgement{Session: f.spec.Session, Now: time.Now()})
		return err
	})
	if err != nil {
		if !f.r.rough {
			f.r.t.Error(err)
		}
		return false
	}
	f.acknowledged++
	f.spent = f.spent.Plus(f.r.costs)
	return true
}

// finished is how a session ends that was told to finish.
func finished(o session.Order) session.Outcome {
	why := hook.EndFinished
	if o.Shutdown {
		why = hook.EndShutdown
	}
	return session.Outcome{Why: why, Detail: o.Finish, Bound: true}
}

// told returns the order that came first, or none.
func (f *fakeSession) told() session.Order {
	select {
	case o := <-f.orders:
		return o
	default:
		return session.Order{}
	}
}

// boot is how long a client takes to its first prompt, entry how long an
// entry takes, of the acts below.
const (
	boot  = 3 * time.Second
	entry = 20 * time.Second
)

// drains does what is queued, an entry after the other, and ends.
func drains(f *fakeSession) session.Outcome {
	time.Sleep(boot)
	for {
		switch o := f.told(); {
		case o.Stop && o.Finish == "":
			return session.Outcome{Why: hook.EndShutdown, Bound: true}
		case o.Finish != "":
			return finished(o)
		}
		if !f.take(entry) {
			return session.Outcome{Why: hook.EndDrained, Bound: true}
		}
	}
}

// persists does what is queued and waits for more.
func persists(f *fakeSession) session.Outcome {
	time.Sleep(boot)
	for {
		for f.take(entry) {
		}
		f.say(hook.Waiting)
		select {
		case o := <-f.orders:
			switch {
			case o.Stop && o.Finish == "":
				return session.Outcome{Why: hook.EndShutdown, Bound: true}
			case o.Finish != "":
				return finished(o)
			}
			return session.Outcome{Why: hook.EndReleased, Bound: true}
		case <-time.After(time.Second):
		}
	}
}

// chokes is a session that does what is queued until it comes to an entry that
// contains fatal, which ends it.
func chokes(fatal string, o session.Outcome) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		for f.work(entry, fatal) {
		}
		return o
	}
}

// ends is a session that does nothing but end.
func ends(o session.Outcome) act {
	return func(*fakeSession) session.Outcome {
		time.Sleep(boot)
		return o
	}
}

// events returns what the journal says, as "kind" or "kind reason".
func (r *rig) journal(kind journal.Kind) []journal.Event {
	r.t.Helper()
	if err := r.s.records.journal.Flush(); err != nil {
		r.t.Error(err)
	}
	var all []journal.Event
	for e, err := range journal.Read(filepath.Join(r.dir, "state")) {
		if err != nil {
			r.t.Fatal(err)
		}
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// gaps are the times between starts, rounded to seconds.
func gaps(at []time.Time) []time.Duration {
	var d []time.Duration
	for i := 1; i < len(at); i++ {
		d = append(d, at[i].Sub(at[i-1]).Round(time.Second))
	}
	return d
}

func (r *rig) agent(name string) *config.Agent {
	r.t.Helper()
	i := slices.IndexFunc(r.fleet.Agents, func(a *config.Agent) bool { return a.Name == name })
	if i < 0 {
		r.t.Fatalf("agent %q is not declared", name)
	}
	return r.fleet.Agents[i]
}
