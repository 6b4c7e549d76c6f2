package orchestrator

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// claims is a session that takes what is queued, or what is not proven, works on it
// for d, claims to be done, and ends.
func claims(d time.Duration) act { return claimsWith(d, func(*fakeSession, *inbox.InFlight) {}) }

// claimsWith is claims with something that the session does meanwhile.
func claimsWith(d time.Duration, does func(*fakeSession, *inbox.InFlight)) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		o := session.Outcome{Why: hook.EndFinished, Bound: true}
		var flight *inbox.InFlight
		err := f.queue(func(q *inbox.Held) (err error) {
			if flight, err = q.Peek(); err != nil {
				return err
			}
			offer := inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session, Checked: true}
			if flight != nil {
				_, flight, err = q.Reoffer(offer)
			} else {
				var e *inbox.Entry
				if e, err = q.Next(); err == nil {
					flight, err = q.Offer(e, offer)
				}
			}
			if err == nil {
				flight, err = q.Advance(inbox.Taken, "")
			}
			if err == nil {
				o.Delivery = flight.DeliveryID
			}
			return err
		})
		if errors.Is(err, inbox.ErrEmpty) {
			return o
		}
		if err != nil {
			f.r.t.Error(err)
			return o
		}
		f.say(hook.Turn)
		time.Sleep(d)
		does(f, flight)
		err = f.queue(func(q *inbox.Held) error {
			_, err := q.Check(inbox.Acknowledgement{Session: f.spec.Session, Reply: "I am done", Now: time.Now()})
			return err
		})
		if err != nil {
			f.r.t.Error(err)
		}
		return o
	}
}

// checks answers the checks of a rig in their order, the last answer again and
// again.
type checks struct {
	mu      sync.Mutex
	answers []proof.Result
	asked   []proof.Check
	at      []time.Time
}

func (c *checks) run(_ context.Context, check proof.Check) (proof.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.asked), len(c.answers)-1)
	c.asked, c.at = append(c.asked, check), append(c.at, time.Now())
	return c.answers[n], nil
}

func (c *checks) n() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

var (
	passing   = proof.Result{Answer: proof.Passed, Output: "ok"}
	asksLater = proof.Result{Answer: proof.Later, Why: "exit status 75"}
	cannotRun = proof.Result{Answer: proof.Trouble, Why: "make is not found in PATH"}
)

// fails is an answer of its own.
func fails(what string) proof.Result {
	return proof.Result{Answer: proof.Failed, Why: "exit status 1", Output: what, Said: what}
}

// proves has the prompts of the agents of a rig checked.
func (r *rig) proves(u *config.Until, answers ...proof.Result) *checks {
	c := &checks{answers: answers}
	r.opt.Check = c.run
	for _, a := range r.fleet.Agents {
		a.Until = u
	}
	return c
}

// replies are the outbox of an agent.
func (r *rig) replies(agent string) []queue.Reply {
	r.t.Helper()
	all, err := queue.Replies(r.t.Context(), []*config.Agent{r.agent(agent)}, time.Time{}, 1000, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// dead are the dead letters of an agent.
func (r *rig) dead(agent string) (all []inbox.DeadEntry) {
	r.t.Helper()
	err := queue.Read(r.t.Context(), r.agent(agent), func(q *inbox.Queue) error {
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			all = append(all, d)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// verdicts are what the journal says of checks.
func (r *rig) verdicts() []string {
	var all []string
	for _, e := range r.journal(journal.Checked) {
		all = append(all, e.Verdict)
	}
	return all
}

func TestDoneMeansProven(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		c := r.proves(config.NewUntil("make", "test"), fails("3 tests fail"), asksLater, fails("1 test fails"), cannotRun, passing)
		r.set("a", claims(entry))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		r.want("a", Idle)
		if got, want := r.verdicts(), []string{"unproven", "check-again", "unproven", "check-trouble", "passed"}; !slices.Equal(got, want) {
			t.Errorf("verdicts %v, want %v", got, want)
		}
		if c.n() != 5 || len(r.started("a")) != 3 {
			t.Errorf("%d checks, %d sessions", c.n(), len(r.started("a")))
		}
		replies := r.replies("a")
		if len(replies) != 1 {
			t.Fatalf("%d replies", len(replies))
		}
		if d := replies[0]; d.Verdict == nil || d.Verdict.By != "check" || d.Verdict.Iteration != 3 || d.Reply != "I am done" || d.Attempt != 1 {
			t.Errorf("reply %+v, verdict %+v", d, d.Verdict)
		}
		if check := c.asked[0]; check.Dir != r.agent("a").Dir || !slices.Equal(check.Argv, []string{"make", "test"}) || check.Key == "" {
			t.Errorf("it runs %+v", check)
		}
		if s := r.state("a"); s.Proof != nil || s.Failures != 0 {
			t.Errorf("state %+v", s)
		}
	})
}

// TestGivenUpIsADeadLetter: with its reason and the last output, and the prompts
// behind it go on.
func TestGivenUpIsADeadLetter(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		u := config.NewUntil("make", "test")
		u.MaxIterations = 2
		r.proves(u, fails("a"), fails("2 tests fail"), passing)
		r.set("a", claims(entry))
		r.send("a", 2)
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		if got, want := r.verdicts(), []string{"unproven", "max-iterations", "passed"}; !slices.Equal(got, want) {
			t.Errorf("verdicts %v, want %v", got, want)
		}
		dead := r.dead("a")
		if len(dead) != 1 || dead[0].Reason != inbox.MaxIterations || !strings.Contains(dead[0].Cause, "2 iterations") || dead[0].Output != "2 tests fail" {
			t.Errorf("dead letters %+v", dead)
		}
		if len(r.replies("a")) != 1 {
			t.Errorf("%d replies", len(r.replies("a")))
		}
	})
}

// TestACheckKeepsTheDirectory: while one runs without a session, no session starts,
// and status says what it waits for.
func TestACheckKeepsTheDirectory(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.proves(config.NewUntil("make", "test"), passing)
		end := make(chan struct{})
		r.opt.Check = func(ctx context.Context, _ proof.Check) (proof.Result, error) {
			select {
			case <-end:
				return passing, nil
			case <-ctx.Done():
				return proof.Result{}, ctx.Err()
			}
		}
		r.fleet.MaxChecks = 1
		r.set("", claims(entry))
		r.send("a", 2)
		stop := r.run()
		r.sleep(time.Minute)
		r.send("b", 1)
		r.sleep(time.Hour)
		r.want("a", status.Checking)
		r.want("b", status.Checking)
		if p := r.state("a").Proof; p == nil || p.State != status.CheckRuns || p.Iteration != 1 {
			t.Errorf("a: %+v", p)
		}
		if p := r.state("b").Proof; p == nil || p.State != status.CheckQueued {
			t.Errorf("b: %+v", p)
		}
		if n := len(r.started("a")); n != 1 {
			t.Errorf("%d sessions", n)
		}
		stop()
		stop = r.run() // the next run asks again
		defer stop()
		r.sleep(time.Minute)
		r.want("a", status.Checking)
		close(end)
		r.sleep(time.Hour)
		r.want("a", Idle)
		if len(r.replies("a")) != 2 || len(r.replies("b")) != 1 {
			t.Errorf("%d and %d replies", len(r.replies("a")), len(r.replies("b")))
		}
	})
}

// TestAVerdictIsAppliedOnce: one that stood in the ledger when the scheduler was
// killed is applied, and the check is not run again.
func TestAVerdictIsAppliedOnce(t *testing.T) {
	t.Parallel()
	for name, passed := range map[string]bool{"passed": true, "unproven": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				u := config.NewUntil("make", "test")
				c := r.proves(u, cannotRun)
				r.set("a", claims(entry))
				r.send("a", 1)
				stop := r.run()
				r.sleep(time.Minute)
				key := c.asked[0].Key
				stop()
				asked := c.n()
				flight := r.inFlight("a")
				b, err := ledger.Open(r.s.opt.StateDir, key)
				if err != nil {
					t.Fatal(err)
				}
				course := b.Course(flight.DeliveryID)
				course.Verdict = &ledger.Verdict{
					Delivery: flight.DeliveryID, Entry: flight.EntryID, Check: flight.Check, Claimed: flight.Claim.Since, Definition: ledger.Definition(u), Iteration: 1, Passed: passed, By: "check",
				}
				if err := b.Keep(course); err != nil {
					t.Fatal(err)
				}
				c.answers = []proof.Result{passing}
				stop = r.run()
				defer stop()
				r.sleep(time.Hour)
				want := 1 // of its second iteration
				if passed {
					want = 0
				}
				if got := c.n() - asked; got != want {
					t.Errorf("%d checks, want %d", got, want)
				}
				if len(r.replies("a")) != 1 {
					t.Errorf("%d replies", len(r.replies("a")))
				}
			})
		})
	}
}

// TestAHeldAgentStaysHeld: that its last work was checked resumes nobody.
func TestAHeldAgentStaysHeld(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(config.NewUntil("make", "test"), asksLater, passing)
		r.set("a", claims(entry))
		r.send("a", 2)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry + time.Second)
		if _, err := r.s.Pause("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Hour)
		r.want("a", Held)
		if len(r.replies("a")) != 1 || len(r.started("a")) != 1 {
			t.Errorf("%d replies, %d sessions", len(r.replies("a")), len(r.started("a")))
		}
	})
}

// TestWhatWasDemandedOfAnEntry: it is known by the state directory, and one that is
// not known there is neither done nor given up.
func TestWhatWasDemandedOfAnEntry(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		c := r.proves(nil, passing)
		a := r.agent("a")
		r.set("a", claims(entry))
		r.mkdir(a.Home)
		state := filepath.Join(r.dir, "state")
		u := config.NewUntil("make", "lint")
		for _, id := range []string{"known", "unknown"} {
			if id == "known" {
				if err := ledger.KeepDemand(state, ledger.Demand{ID: id, Inbox: a.Inbox, Until: u}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := queue.Append(t.Context(), a, inbox.Letter{ID: id, Prompt: "do it", Checked: true}); err != nil {
				t.Fatal(err)
			}
		}
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		r.want("a", status.Checking)
		if p := r.state("a").Proof; p == nil || p.State != status.CheckTrouble {
			t.Errorf("proof %+v", p)
		}
		if c.n() != 1 || !slices.Equal(c.asked[0].Argv, u.Check) || len(r.replies("a")) != 1 || len(r.dead("a")) != 0 {
			t.Errorf("%d checks, %d replies, %d dead letters", c.n(), len(r.replies("a")), len(r.dead("a")))
		}
		if all, err := ledger.Demands(state, a.Inbox); len(all) != 0 || err != nil {
			t.Errorf("demands %v, %v", all, err)
		}
	})
}

// TestARenamedAgentIsCheckedOnce: the check of one that is removed is ended, and has
// ended, before the one that has its directory next has another one made. Two of them
// had one note, so that the second one ended the first, which counted as not passed.
func TestARenamedAgentIsCheckedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, "old", func(t *testing.T, r *rig) {
		u := config.NewUntil("make", "test")
		r.proves(u, passing)
		var mu sync.Mutex
		began, ended, atOnce := 0, 0, 0
		r.opt.Check = func(ctx context.Context, _ proof.Check) (proof.Result, error) {
			mu.Lock()
			began++
			first := began == 1
			atOnce = max(atOnce, began-ended)
			mu.Unlock()
			defer func() { mu.Lock(); ended++; mu.Unlock() }()
			if !first {
				time.Sleep(time.Minute)
				return passing, nil
			}
			<-ctx.Done()
			time.Sleep(2 * time.Second) // from SIGTERM to its end
			return proof.Result{}, ctx.Err()
		}
		r.set("", claims(entry))
		r.send("old", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry + time.Minute)
		renamed := r.declare("old")
		renamed.Name, renamed.Until = "new", u
		if _, err := r.s.Reload(r.with(renamed)); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Hour)
		if began != 2 || atOnce != 1 {
			t.Errorf("%d checks, %d of them at once, want 2 in turn", began, atOnce)
		}
		if got, want := r.verdicts(), []string{"passed"}; !slices.Equal(got, want) {
			t.Errorf("verdicts %v, want %v", got, want)
		}
		r.want("new", Idle)
	})
}

// TestAReportThatComesLateEndsNoCheck: the check of an iteration had begun before the
// session's report about the one before it was heard, was ended for that, and made again.
func TestAReportThatComesLateEndsNoCheck(t *testing.T) {
	t.Parallel()
	for _, voids := range []bool{false, true} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.proves(config.NewUntil("make", "test"), passing)
			var ran, ended atomic.Int32
			r.opt.Check = func(ctx context.Context, _ proof.Check) (proof.Result, error) {
				ran.Add(1)
				select {
				case <-time.After(10 * time.Minute):
					return passing, nil
				case <-ctx.Done():
					ended.Add(1)
					return proof.Result{}, context.Cause(ctx)
				}
			}
			r.send("a", 1)
			r.set("a", func(f *fakeSession) session.Outcome {
				o := claims(entry)(f)
				says := func(c *session.Checking) {
					f.reports <- session.Report{At: time.Now(), Phase: hook.Checking, Checking: c}
				}
				now := &session.Checking{Delivery: o.Delivery, Iteration: 1, Check: 1}
				says(now)
				time.Sleep(1500 * time.Millisecond)
				if voids {
					if err := f.queue(func(q *inbox.Held) error { _, err := q.Void(); return err }); err != nil {
						f.r.t.Error(err)
					}
				}
				says(nil)
				time.Sleep(time.Millisecond)
				if got := ended.Load(); (got == 1) != voids || got > 1 {
					f.r.t.Errorf("voided %v: %d checks were ended", voids, got)
				}
				if !voids {
					says(now)
				}
				time.Sleep(time.Hour)
				return o
			})
			stop := r.run()
			defer stop()
			r.sleep(30 * time.Minute)
			if done := len(r.replies("a")); ran.Load() != 1 || (done == 1) == voids {
				t.Errorf("voided %v: %d checks, %d done", voids, ran.Load(), done)
			}
		})
	}
}
