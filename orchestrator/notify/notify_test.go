package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// rig is a fleet whose scheduler says what a test wants, and targets that note what
// they get.
type rig struct {
	t     *testing.T
	fleet *config.Fleet
	dir   string
	store *store.Store
	watch *Watch
	stop  func()

	mu       sync.Mutex
	agents   map[string]status.AgentState
	backlogs map[string]status.Backlog
	alive    error
	got      map[string][]string // :: target → headlines
	text     map[string][]string // :: target → the texts of what prompts have become
	keys     map[string]int      // :: target and key → how often it came
	fails    map[string]string   // :: target → why it takes nothing
	full     []notice.Fact       // the disks
}

type targets []config.Target

// inBubble runs a test in a bubble whose fleet has some targets, and which has not been
// started.
func inBubble(t *testing.T, all targets, test func(*testing.T, *rig)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, dir, all...)) })
}

func newRig(t *testing.T, dir string, targets ...config.Target) *rig {
	t.Helper()
	r := &rig{
		t: t, dir: dir, agents: map[string]status.AgentState{}, backlogs: map[string]status.Backlog{}, got: map[string][]string{}, text: map[string][]string{}, keys: map[string]int{}, fails: map[string]string{},
		fleet: &config.Fleet{Name: "office", Targets: map[string]*config.Target{}},
	}
	for i := range targets {
		r.fleet.Targets[targets[i].Name] = &targets[i]
	}
	for _, name := range []string{"a", "b"} {
		r.fleet.Agents = append(r.fleet.Agents, &config.Agent{Name: name, Dir: dir, Home: filepath.Join(dir, name), Inbox: filepath.Join(dir, name, "inbox.jsonl"), StuckAfter: 30 * time.Minute})
		r.is(name, status.Idle, "")
	}
	return r
}

func (r *rig) is(agent string, s status.State, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[agent] = status.AgentState{Agent: agent, State: s, Since: time.Now(), Reason: foreign.Text(why)}
	if r.watch != nil {
		r.watch.Observe(journal.Event{})
	}
}

func (r *rig) queued(b status.Backlog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backlogs[b.Agent] = b
}

func (r *rig) Snapshot() (all []status.AgentState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.agents {
		all = append(all, a)
	}
	return all
}

func (r *rig) Backlog() (all []status.Backlog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.backlogs {
		all = append(all, b)
	}
	return all
}

func (r *rig) Doors() []status.Door { return nil }

func (r *rig) StoreTroubles() []store.Trouble { return nil }

func (r *rig) Alive(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive
}

func (r *rig) deliver(_ context.Context, to *config.Target, _ deliver.From, m *outbox.Message) outbox.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.fails[to.Name]; why != "" {
		return outbox.Verdict{Why: why}
	}
	r.keys[to.Name+" "+m.Key]++
	for _, n := range m.Notices {
		r.got[to.Name] = append(r.got[to.Name], n.Headline())
		if n.Kind == notice.GivenUp {
			r.text[to.Name] = append(r.text[to.Name], n.Text)
		}
	}
	return outbox.Verdict{}
}

func (r *rig) texts() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}

func (r *rig) failing(target, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails[target] = why
}

// start begins a run; end stops it in order, kill as kill -9 does.
func (r *rig) start() {
	var end func()
	r.store, end = storetest.Open(r.t, r.dir)
	r.watch = New(Options{Fleet: r.fleet, StateDir: r.dir, Store: r.store, Ours: "heartbeat", Host: "box", Log: slog.New(slog.DiscardHandler), Full: func(*config.Fleet) []notice.Fact {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.full
	}})
	r.watch.deliver = r.deliver
	ctx, cancel := context.WithCancel(r.t.Context())
	var all sync.WaitGroup
	all.Go(func() { r.watch.Run(ctx, r) })
	r.watch.ping = func(context.Context, *config.Ping, deliver.Sign, string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if why := r.fails["ping"]; why != "" {
			return errors.New(why)
		}
		return nil
	}
	all.Go(func() { r.watch.Ping(ctx, r) })
	r.stop = func() { cancel(); all.Wait(); end(); r.stop = nil }
}

// takes returns what a target got since the last call.
func (r *rig) takes(target string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got[target]
	delete(r.got, target)
	return got
}

func (r *rig) expects(target string, want ...string) {
	r.t.Helper()
	if got := r.takes(target); !slices.Equal(got, want) {
		r.t.Errorf("%s got  %q\nwant %q", target, got, want)
	}
}

var (
	phone = config.Target{Name: "phone", Tier: config.TierUrgent}
	desk  = config.Target{Name: "desk", Tier: config.TierInfo}
)

func TestWhoIsToldWhat(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone, desk}, func(t *testing.T, r *rig) {
		r.start()
		defer r.stop()
		time.Sleep(5 * time.Minute)
		r.is("a", status.Held, "6 failures within 30m0s")
		r.is("b", status.Parked, "usage limit")
		time.Sleep(30 * time.Second)
		r.expects("phone", "a is held")
		r.expects("desk", "a is held")
		time.Sleep(3 * time.Minute)
		r.expects("phone")
		r.expects("desk", "b is parked")
		r.is("a", status.Idle, "")
		r.is("b", status.Idle, "")
		time.Sleep(5 * time.Minute)
		r.expects("phone", "a is no longer held")
		r.expects("desk", "a is no longer held", "b is no longer parked")
	})
}

// TestEachQuestionIsTold also when it comes right after the answer to another one.
func TestEachQuestionIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		defer r.stop()
		time.Sleep(5 * time.Minute)
		r.asks("a", "r1")
		time.Sleep(30 * time.Second)
		r.expects("phone", "a waits for approval")
		r.asks("a", "r2")
		time.Sleep(30 * time.Second)
		r.expects("phone", "a waits for approval")
		time.Sleep(5 * time.Minute)
		r.expects("phone", "a has its answer")
	})
}

// TestAQuestionThatNobodyAnswers is told again after an hour, with how many prompts wait
// behind it and since when; its end is told once. A restart of the run changes nothing.
func TestAQuestionThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		defer func() { r.stop() }()
		time.Sleep(5 * time.Minute)
		r.asks("a", "r1")
		r.queued(status.Backlog{Agent: "a", Queued: 3, First: "x"})
		began := time.Now()
		time.Sleep(time.Minute)
		r.expects("phone", "a waits for approval")
		time.Sleep(time.Hour)
		r.expects("phone", "a still waits for approval")
		r.stop()
		facts := r.watch.look(r, time.Now())
		if len(facts) != 1 || !strings.HasPrefix(facts[0].Text, "waits for approval for 1h; 3 prompts wait behind it") || !facts[0].Since.Equal(began) {
			t.Errorf("it is told %+v", facts)
		}
		r.start()
		time.Sleep(90 * time.Minute)
		r.expects("phone") // the next one comes after four hours
		r.is("a", status.Idle, "")
		r.queued(status.Backlog{Agent: "a"})
		time.Sleep(10 * time.Minute)
		r.expects("phone", "a has its answer")
		r.stop()
		r.start()
		time.Sleep(10 * time.Minute)
		r.expects("phone")
	})
}

func (r *rig) asks(agent, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.agents[agent] = status.AgentState{Agent: agent, State: status.Held, Since: now, Reason: status.ForApproval + "Deploy?", Approval: &status.Approval{ID: id, Question: "Deploy?", Since: now}}
	r.watch.Observe(journal.Event{})
}

// TestAFullDiskIsTold within minutes, and that there is room again.
func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		defer func() { r.stop() }()
		time.Sleep(5 * time.Minute)
		r.fills(notice.Fact{Key: "/disk-full/x", Kind: notice.DiskFull, Urgent: true, Since: time.Now(), Text: "/x: 3 MiB free", Slow: true})
		time.Sleep(3 * time.Minute)
		r.expects("phone", "the scheduler has a full disk")
		r.stop()
		r.start()
		time.Sleep(10 * time.Minute)
		r.expects("phone")
		r.fills()
		time.Sleep(40 * time.Minute)
		r.expects("phone", "the scheduler has room on that disk again")
	})
}

func (r *rig) fills(disks ...notice.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = disks
}

// A fleet of two whose agents come and go all week, over restarts, with a target that
// fails every other day: what is told can be read, no message comes twice, and who was
// told of a trouble is told of its end.
func TestAWeekOfAFlappingFleet(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone, desk}, func(t *testing.T, r *rig) {
		r.start()
		told := map[string][]string{}
		for hour := range 7 * 24 {
			r.is("a", status.Held, "6 failures within 30m0s")
			r.is("b", status.Parked, "usage limit")
			time.Sleep(20 * time.Minute)
			r.is("a", status.Idle, "")
			time.Sleep(20 * time.Minute)
			r.is("b", status.Idle, "")
			time.Sleep(20 * time.Minute)
			if hour%24 == 7 {
				r.stop()
				r.start()
			}
			why := ""
			if hour/24%2 == 1 {
				why = "connection refused"
			}
			r.failing("phone", why)
			for _, name := range []string{"phone", "desk"} {
				told[name] = append(told[name], r.takes(name)...)
			}
		}
		time.Sleep(24 * time.Hour)
		r.stop()
		for _, name := range []string{"phone", "desk"} {
			told[name] = append(told[name], r.takes(name)...)
			count := map[string]int{}
			for _, h := range told[name] {
				count[h]++
			}
			t.Logf("%s: %d notices of 168 times: %v", name, len(told[name]), count)
			if len(told[name]) > 60 || count["a is held"] == 0 || count["a is held"] != count["a is no longer held"] {
				t.Errorf("%s: %d notices: %q", name, len(told[name]), told[name])
			}
		}
		for key, n := range r.keys {
			if n > 1 {
				t.Errorf("%s came %d times", key, n)
			}
		}
	})
}

// A target that fails keeps nothing from the others, is itself told of there, and gets
// all that it has missed.
func TestADeadTarget(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone, desk}, func(t *testing.T, r *rig) {
		r.failing("phone", "connection refused")
		r.start()
		r.is("a", status.Held, "x")
		time.Sleep(10 * time.Minute)
		r.expects("desk", "a is held", "the scheduler cannot tell phone")
		r.expects("phone")
		if boxes, err := Pending(r.dir); err != nil || boxes["phone"].Pending() != 1 || boxes["phone"].Why != "connection refused" {
			t.Errorf("%+v, %v", boxes["phone"], err)
		}
		r.stop()
		r.start() // what was on its way still is
		time.Sleep(time.Minute)
		r.is("a", status.Idle, "")
		time.Sleep(30 * time.Minute)
		r.failing("phone", "")
		time.Sleep(40 * time.Minute)
		r.expects("phone", "a is held", "a is no longer held")
		r.expects("desk", "a is no longer held", "the scheduler can tell phone again")
		r.stop()
		records, err := Records(r.dir, 100, []string{"phone"})
		if err != nil || len(records) != 3 || records[0].Outcome != outbox.Failed || records[1].Outcome != outbox.Sent || records[1].Attempts < 5 {
			t.Errorf("%+v, %v", records, err)
		}
	})
}

// TestAPingThatDoesNotArriveIsToldAndShown after some minutes, over a restart as well, and
// that it arrives again.
func TestAPingThatDoesNotArriveIsToldAndShown(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.fleet.Ping = &config.Ping{Every: time.Minute}
		run := lastrun.Begin(r.dir, lastrun.Run{PID: 1, Began: time.Now()}, slog.New(slog.DiscardHandler))
		defer run.End(lastrun.Stopped, lastrun.ByCommand)
		r.start()
		time.Sleep(time.Hour)
		r.failing("ping", "the server answers 404 Not Found")
		time.Sleep(2 * time.Minute)
		r.failing("ping", "") // a moment is not told
		time.Sleep(10 * time.Minute)
		r.expects("phone")
		r.failing("ping", "the server answers 404 Not Found")
		began := time.Now()
		time.Sleep(4 * time.Minute)
		if _, u := Untold(r.dir, time.Now()); u != nil {
			t.Errorf("%+v", u)
		}
		time.Sleep(3 * time.Minute)
		r.expects("phone", "the scheduler cannot send its ping")
		if _, u := Untold(r.dir, time.Now()); u == nil || u.Why != "the server answers 404 Not Found" || u.Since.Sub(began) > time.Minute {
			t.Errorf("%+v", u)
		}
		r.stop()
		run.End(lastrun.Stopped, lastrun.ByCommand)
		if _, u := Untold(r.dir, time.Now()); u != nil {
			t.Errorf("nothing runs: %+v", u)
		}
		r.start()
		time.Sleep(10 * time.Minute)
		r.expects("phone")
		r.failing("ping", "")
		time.Sleep(10 * time.Minute)
		r.expects("phone", "the scheduler sends its ping again")
		if _, u := Untold(r.dir, time.Now()); u != nil {
			t.Errorf("%+v", u)
		}
		r.stop()
	})
}

// TestAPingThatFailsForAnotherReasonEachTimeIsRarelyWritten: the reason may name a port, which
// is another one each time, and everything that is kept was written with it.
func TestAPingThatFailsForAnotherReasonEachTimeIsRarelyWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.fleet.Ping = &config.Ping{Every: time.Minute}
		run := lastrun.Begin(r.dir, lastrun.Run{PID: 1, Began: time.Now()}, slog.New(slog.DiscardHandler))
		defer run.End(lastrun.Stopped, lastrun.ByCommand)
		r.start()
		time.Sleep(time.Hour)
		var last string
		reasons := map[string]bool{}
		for port := range 120 {
			last = fmt.Sprintf("read 127.0.0.1:%d: connection reset", 40000+port)
			r.failing("ping", last)
			time.Sleep(30 * time.Second)
			k, err := ask(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			if k.Ping != nil {
				reasons[k.Ping.Why] = true
			}
		}
		if n := len(reasons); n < 5 || n > 15 {
			t.Errorf("%d reasons were written in an hour", n)
		}
		time.Sleep(10 * time.Minute)
		if _, u := Untold(r.dir, time.Now()); u == nil || u.Why != last {
			t.Errorf("the last reason is %q: %+v", last, u)
		}
		r.stop()
	})
}

// A run after one that did not end in order says so, and for how long nobody watched;
// one after a stop says nothing.
func TestAStartAfterACrash(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		time.Sleep(time.Hour)
		r.stop()
		time.Sleep(time.Hour)
		r.start()
		time.Sleep(time.Hour)
		r.expects("phone")
		r.stop()
		failed := lastrun.Begin(r.dir, lastrun.Run{PID: 1, Began: time.Now()}, slog.New(slog.DiscardHandler))
		failed.End(lastrun.Failed, "the disk is full")
		time.Sleep(3 * time.Hour)
		next := lastrun.Begin(r.dir, lastrun.Run{PID: 2, Began: time.Now()}, slog.New(slog.DiscardHandler))
		r.start()
		time.Sleep(time.Minute)
		r.stop()
		next.End(lastrun.Stopped, lastrun.ByCommand)
		r.expects("phone", "the scheduler was started after a crash")
		records, err := Records(r.dir, 1, []string{"phone"})
		if err != nil || len(records) != 1 || !strings.Contains(records[0].Notices[0].Text, "nobody watched for about 3h0m") {
			t.Errorf("%+v, %v", records, err)
		}
	})
}

// TestARunThatEndsAtOnceForgetsNothing: it could not read what people had been told, took that for
// nothing, and kept it so; replies were sent again.
func TestARunThatEndsAtOnceForgetsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		s, end := storetest.Open(t, r.dir)
		defer end()
		book, kept, err := memo.Open(t.Context(), s, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		kept.Reply("a/reply/1/phone")
		if err := book.Save(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		r.watch = New(Options{Fleet: r.fleet, StateDir: r.dir, Store: s, Ours: "heartbeat", Host: "box", Log: slog.New(slog.DiscardHandler)})
		r.watch.deliver = r.deliver
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		r.watch.Run(ended, r)
		if _, kept, err = memo.Open(t.Context(), s, time.Now()); err != nil || !kept.IsReplied("a/reply/1/phone") || !r.watch.kept.IsReplied("a/reply/1/phone") {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}

// A queue whose first prompt does not move is told, also over a restart; one whose
// prompt is worked on, or whose agent is held, is not.
func TestAQueueThatDoesNotMove(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		r.is("a", status.Waiting, "all 4 slots are taken")
		r.queued(status.Backlog{Agent: "a", Queued: 3, First: "x"})
		time.Sleep(29 * time.Minute)
		r.expects("phone")
		time.Sleep(3 * time.Minute)
		r.expects("phone", "a has a queue that does not move")
		r.stop()
		r.start()
		time.Sleep(45 * time.Minute)
		r.expects("phone")
		r.queued(status.Backlog{Agent: "a", Queued: 2, First: "y"})
		time.Sleep(5 * time.Minute)
		r.expects("phone", "a has a queue that moves again")
		r.is("a", status.Held, "x")
		time.Sleep(59 * time.Minute)
		r.expects("phone", "a is held")
		r.stop()
	})
}

// TestAStuckQueueIsAsOldAsItsFirstPrompt: another prompt was said not to move for as long
// as the one before it had not, and at once.
func TestAStuckQueueIsAsOldAsItsFirstPrompt(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(r *rig){
		"the queue was empty": func(r *rig) {
			r.queued(status.Backlog{Agent: "a"})
			time.Sleep(time.Minute)
			r.queued(status.Backlog{Agent: "a", Queued: 1, First: "y"})
		},
		"another run": func(r *rig) {
			r.stop()
			r.queued(status.Backlog{Agent: "a", Queued: 1, First: "y"})
			r.start()
		},
		"another run, and the queue was empty": func(r *rig) {
			r.queued(status.Backlog{Agent: "a"})
			r.stop()
			r.start()
			time.Sleep(time.Minute)
			r.queued(status.Backlog{Agent: "a", Queued: 1, First: "y"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
				r.start()
				r.is("a", status.Waiting, "all 4 slots are taken")
				r.queued(status.Backlog{Agent: "a", Queued: 1, First: "x"})
				time.Sleep(32 * time.Minute)
				r.expects("phone", "a has a queue that does not move")
				next(r)
				time.Sleep(5 * time.Minute)
				r.expects("phone", "a has a queue that moves again")
				time.Sleep(23 * time.Minute)
				r.expects("phone")
				time.Sleep(5 * time.Minute)
				r.expects("phone", "a has a queue that does not move")
				r.stop()
				records, err := Records(r.dir, 1, []string{"phone"})
				if err != nil || len(records) != 1 || !strings.Contains(records[0].Notices[0].Text, "has not moved for 30m") {
					t.Errorf("%+v, %v", records, err)
				}
			})
		})
	}
}

// TestAStuckQueueIsNotOverWhileItsFirstPromptIsThere: what else keeps the agent from it is
// told beside it, over a restart as well; only the age of what is known counts.
func TestAStuckQueueIsNotOverWhileItsFirstPromptIsThere(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		r.is("a", status.Waiting, "all 4 slots are taken")
		r.queued(status.Backlog{Agent: "a", Queued: 1, First: "x"})
		time.Sleep(20 * time.Minute)
		r.stop()
		r.start()
		time.Sleep(12 * time.Minute)
		r.expects("phone", "a has a queue that does not move")
		r.is("a", status.Held, "x")
		time.Sleep(10 * time.Minute)
		r.expects("phone", "a is held")
		r.stop()
		r.start()
		r.queued(status.Backlog{Agent: "a", Queued: 1, Problem: "permission denied"})
		time.Sleep(10 * time.Minute)
		r.expects("phone", "a cannot use its directory or queue")
		r.queued(status.Backlog{Agent: "a"})
		r.is("a", status.Idle, "")
		time.Sleep(10 * time.Minute)
		r.expects("phone", "a is no longer held", "a has a queue that moves again", "a can use its directory and queue again")
		r.stop()
	})
}

// TestWhatIsOverIsKeptAtOnce: a run that is killed before the end was told hands it on.
func TestWhatIsOverIsKeptAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		defer r.stop()
		r.is("a", status.Held, "x")
		time.Sleep(5 * time.Minute)
		for _, over := range []bool{false, true, false} {
			if over {
				r.is("a", status.Idle, "")
			} else {
				r.is("a", status.Held, "x")
			}
			time.Sleep(30 * time.Second)
			k, err := ask(r.dir)
			if told := k.Told["a/held"]; err != nil || told == nil || told.Gone.IsZero() == over {
				t.Errorf("over %t: %+v, %v", over, told, err)
			}
		}
	})
}

// A reload counts at once: who is told, and who is not any more.
func TestAReload(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{}, func(t *testing.T, r *rig) {
		r.start()
		defer r.stop()
		time.Sleep(time.Minute)
		later := *r.fleet
		later.Targets = map[string]*config.Target{"desk": &desk}
		r.watch.Use(&later)
		r.is("a", status.Held, "x")
		time.Sleep(time.Minute)
		r.expects("desk", "a is held")
	})
}

// Where nothing can be written, the message that may say so is sent all the same, once.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		if err := r.store.Close(); err != nil {
			t.Fatal(err)
		}
		r.is("a", status.Held, "x")
		time.Sleep(30 * time.Minute)
		r.stop()
		r.expects("phone", "a is held")
	})
}

// Whoever watches from outside gets a sign of life only while the scheduler's own loop
// turns, and the loop of the notices.
func TestWhatHealthyMeans(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.start()
		time.Sleep(time.Hour)
		if err := r.watch.alive(t.Context(), r); err != nil {
			t.Errorf("it works: %v", err)
		}
		r.mu.Lock()
		r.alive = errors.New("the loop of its schedules does not turn")
		r.mu.Unlock()
		if err := r.watch.alive(t.Context(), r); err == nil || !strings.Contains(err.Error(), "does not turn") {
			t.Errorf("the scheduler's loop stands still: %v", err)
		}
		r.mu.Lock()
		r.alive = nil
		r.mu.Unlock()
		r.stop()
		time.Sleep(2 * time.Minute)
		if err := r.watch.alive(t.Context(), r); !errors.Is(err, errNoTurn) {
			t.Errorf("its own loop stands still: %v", err)
		}
	})
}

// Which troubles are told, and what needs a person.
// A notice leads to the page that shows what it is about, if people can reach one.
func TestNoticesLinkToThePage(t *testing.T) {
	t.Parallel()
	f := &config.Fleet{Listen: []config.Listen{{Serves: []config.Service{config.ServesPage}}}, Page: config.Page{Address: &url.URL{Scheme: "https", Host: "fleet.example:8443"}}}
	w := &Watch{fleet: f}
	asks := status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Reason: status.ForApproval + "push?", Approval: &status.Approval{ID: "ap/1"}}}
	more := asks
	more.Approval = &status.Approval{ID: "ap-1", More: 2}
	held := status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Reason: "x"}}
	for want, a := range map[string]status.Agent{"approvals/ap%2F1": asks, "approvals": more, "agents/a": held} {
		facts := w.linked(troubles(a, "heartbeat", time.Now()), a.Approval)
		if len(facts) != 1 || facts[0].Link != "https://fleet.example:8443/page/"+want {
			t.Errorf("%+v, want %s", facts, want)
		}
		m := notice.Memory{}
		v := notice.View{Now: time.Now(), Facts: facts}
		_ = notice.Decide(v, m)
		v.Now = v.Now.Add(time.Minute)
		if told := notice.Decide(v, m); len(told) != 1 || told[0].Link != facts[0].Link {
			t.Errorf("told: %+v", told)
		}
	}
	if facts := w.linked([]notice.Fact{{}}, nil); facts[0].Link != "https://fleet.example:8443/page/" {
		t.Errorf("the fleet's: %+v", facts)
	}
	f.Listen = nil
	if facts := w.linked([]notice.Fact{{Agent: "a"}}, nil); facts[0].Link != "" {
		t.Errorf("nobody serves it: %+v", facts)
	}
}

func TestTroublesAreFacts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		a    status.Agent
		want string
	}{
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Reason: "x"}}, "a/held true"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Reason: "authentication_failed"}}, "a/login true"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Parked}}, "a/parked false"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Parked, OverBudget: true}}, "a/over-budget false"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.BackingOff}}, ""},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Paused: now}}, ""},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Paused: now, PausedBy: "b"}}, "a/paused false"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Idle}, Dead: 5}, ""},
		{status.Agent{AgentState: status.AgentState{Agent: "a", Lost: "gone"}}, "a/directory-lost true"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Idle}, Problem: "broken"}, "a/unusable true"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held}, Problem: "where?", Asks: true}, "a/queue-asks true"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.BackingOff, Stuck: &status.Stuck{Told: true}}}, "a/stuck true"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Reason: status.ForApproval + "x", Approval: &status.Approval{ID: "r1", Since: now}}}, "a/approval/r1 true"},
		{agentOf(status.AgentState{Agent: "a", State: status.Idle, AwaitsAside: &status.Approval{ID: "r2", Since: now}}, status.Backlog{}), "a/approval/r2 true"},
		{agentOf(status.AgentState{Agent: "a", State: status.Held, Reason: status.ForApproval + "x", Approval: &status.Approval{ID: "r1", Since: now}, AwaitsAside: &status.Approval{ID: "r2", Since: now}}, status.Backlog{}), "a/approval/r1 true, a/approval/r2 true"},
		{status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Checking, Proof: &status.Proof{State: status.CheckTrouble, Since: now, Vain: &status.Vain{As: status.CheckTrouble, Since: now, Times: 1}}}}, "a/check-trouble true"},
	} {
		var got []string
		for _, f := range troubles(tt.a, "heartbeat", now) {
			got = append(got, fmt.Sprint(f.Key, " ", f.Urgent))
			if (notice.Notice{Kind: f.Kind, Event: notice.Ended}).Headline() == "the scheduler " {
				t.Errorf("%s has no words for its end", f.Kind)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%+v: %q, want %q", tt.a.AgentState, got, tt.want)
		}
	}
}
