package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
	"heartbeat/orchestrator/usage/usagetest"
)

// spends has each entry cost a turn and a dollar.
func spends(r *rig, names ...string) {
	r.costs = usage.Sum{Turns: 1, Cost: 1}
	r.fleet.MaxSessions = len(names)
	for _, name := range names {
		r.agent(name).Zone = time.UTC
		r.set(name, drains)
	}
}

func (r *rig) done(names ...string) (n int) {
	for _, name := range names {
		n += r.state(name).Acknowledged
	}
	return n
}

// TestABudgetIsKept: an agent that never stops spending is stopped within one
// hand-over of what it may spend in an hour, and goes on in the next one, hour by hour;
// whatever a person types.
func TestABudgetIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, "a free", func(t *testing.T, r *rig) {
		spends(r, "a", "free")
		r.agent("a").Budget = config.Budget{Hour: config.Allowance{Turns: 3}, Day: config.Allowance{Cost: 10}}
		r.send("a", 100)
		r.send("free", 100)
		time.Sleep(10 * time.Minute) // the bubble begins at midnight
		stop := r.run()
		defer stop()
		for hour := range 3 {
			r.sleep(20 * time.Minute)
			r.want("a", Parked)
			a := r.state("a")
			if n := r.done("a"); n < 3*(hour+1) || n > 4*(hour+1) {
				t.Fatalf("in hour %d: %d entries done", hour, n)
			}
			if until := a.Until.UTC(); hour < 2 && (until.Hour() != hour+1 || until.Minute() != 0) || !a.OverBudget {
				t.Fatalf("in hour %d: parked until %v", hour, until)
			}
			if _, err := r.s.Resume("a"); err != nil {
				t.Fatal(err)
			}
			before := r.done("a")
			r.sleep(20 * time.Minute)
			if n := r.done("a"); n != before {
				t.Fatalf("in hour %d: %d entries done after a person resumed it, %d before", hour, n, before)
			}
			r.sleep(20 * time.Minute)
		}
		if a := r.state("a"); a.Reason.String() != "its budget for the day is spent: $10.00 of $10.00" && !strings.HasPrefix(a.Reason.String(), "its budget for the day is spent: $1") || a.Until.UTC().Hour() != 0 {
			t.Errorf("for the day: until %v because %q", a.Until, a.Reason)
		}
		if n := r.done("free"); n != 100 {
			t.Errorf("an agent without a budget: %d done", n)
		}
		over := r.journal(journal.OverBudget)
		if len(over) < 3 || len(over) > 4 || over[0].Until.IsZero() || over[0].Agent != "a" {
			t.Errorf("journal: %+v", over)
		}
	})
}

// TestASharedBudget stops all who spend from it, also a session that waits for work,
// and nobody else.
func TestASharedBudget(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set     func(r *rig)
		whose   string
		stopped []string
		free    []string
	}{
		"of a group": {func(r *rig) {
			r.fleet.Groups = map[string]int{"g": 3}
			r.fleet.Budgets = map[string]config.Budget{"g": {Day: config.Allowance{Cost: 6}}}
			r.agent("a").Group, r.agent("b").Group = "g", "g"
		}, "the budget of group g for the day is spent", []string{"a", "b"}, []string{"c"}},
		"of the fleet": {func(r *rig) { r.fleet.Budget = config.Budget{Day: config.Allowance{Cost: 6}} }, "the fleet's budget for the day is spent", []string{"a", "b", "c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b c", func(t *testing.T, r *rig) {
				spends(r, "a", "b", "c")
				tt.set(r)
				r.agent("b").Mode = hook.Persist
				r.set("b", persists)
				r.send("a", 50)
				r.send("c", 50)
				stop := r.run()
				defer stop()
				r.send("b", 1)
				r.sleep(30 * time.Minute)
				for _, n := range tt.stopped {
					r.want(n, Parked)
					want := fmt.Sprintf("%s: $%d.00 of $6.00", tt.whose, r.done(tt.stopped...))
					if a := r.state(n); a.Reason.String() != want {
						t.Errorf("%s: %q, want %q", n, a.Reason, want)
					}
				}
				if n := r.done(tt.stopped...); n < 6 || n > 6+len(tt.stopped) {
					t.Errorf("%d entries done for 6 dollars", n)
				}
				for _, n := range tt.free {
					if r.done(n) != 50 {
						t.Errorf("%s has done %d", n, r.done(n))
					}
				}
				// More is allowed: they go on at once.
				more := r.with(r.declare("a"), r.declare("b"), r.declare("c"))
				more.Budget, more.Budgets = config.Budget{}, nil
				if _, err := r.s.Reload(more); err != nil {
					t.Fatal(err)
				}
				r.sleep(time.Hour)
				if n := r.done("a"); n != 50 {
					t.Errorf("after a reload: %d done", n)
				}
			})
		})
	}
}

// TestTheBudgetThatLastsLongestHolds: who is parked for its own hour is told that the
// fleet's day is spent, and does not begin when its hour is over.
func TestTheBudgetThatLastsLongestHolds(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		spends(r, "a", "b")
		r.fleet.Budget = config.Budget{Day: config.Allowance{Cost: 20}}
		r.agent("a").Budget = config.Budget{Hour: config.Allowance{Turns: 3}}
		r.send("a", 50)
		stop := r.run()
		defer stop()
		r.sleep(30 * time.Minute) // the bubble begins at midnight
		if a := r.state("a"); a.State != Parked || a.Until.UTC().Hour() != 1 {
			t.Fatalf("after its hour's turns: %s until %v because %q", a.State, a.Until, a.Reason)
		}
		before := r.done("a")
		r.send("b", 50)
		r.sleep(25 * time.Minute)
		for _, name := range []string{"a", "b"} {
			if a := r.state(name); a.State != Parked || a.Until.UTC().Hour() != 0 || !strings.HasPrefix(a.Reason.String(), "the fleet's budget for the day is spent: $") {
				t.Errorf("%s: %s until %v because %q", name, a.State, a.Until, a.Reason)
			}
		}
		r.sleep(2 * time.Hour)
		if n := r.done("a"); n != before {
			t.Errorf("after its hour it has done %d more", n-before)
		}
	})
}

// TestABudgetInTwoZones: whose day is not over is not started, though that of who spent
// the rest is.
func TestABudgetInTwoZones(t *testing.T) {
	t.Parallel()
	inBubble(t, "a far", func(t *testing.T, r *rig) {
		spends(r, "a", "far")
		r.agent("far").Zone = time.FixedZone("far", 12*60*60)
		r.fleet.Budget = config.Budget{Day: config.Allowance{Cost: 6}}
		stop := r.run()
		defer stop()
		r.sleep(11 * time.Hour) // the bubble begins at midnight, UTC
		r.send("far", 5)
		r.sleep(90 * time.Minute)
		r.send("far", 2)
		r.sleep(10 * time.Minute)
		r.send("a", 5)
		r.sleep(10 * time.Minute)
		if r.done("far") != 7 || r.done("a") != 0 || len(r.started("a")) != 0 {
			t.Errorf("done: %d and %d", r.done("far"), r.done("a"))
		}
		r.want("a", Parked)
		r.sleep(12 * time.Hour)
		if r.done("a") != 5 {
			t.Errorf("the day after: %d done", r.done("a"))
		}
	})
}

// TestABudgetIsSpentInOneZoneOnly: who spends the rest of another one's day, of which its
// own has not had so much, stops the other one's live session, too: it was handed one
// more entry, and more while somebody else spent.
func TestABudgetIsSpentInOneZoneOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, "a far", func(t *testing.T, r *rig) {
		spends(r, "a", "far")
		r.agent("far").Zone = time.FixedZone("far", -12*60*60)
		r.fleet.Budget = config.Budget{Day: config.Allowance{Cost: 6}}
		r.set("far", func(f *fakeSession) session.Outcome {
			time.Sleep(boot)
			for o := f.told(); o.Finish == ""; o = f.told() {
				if !f.take(3 * entry) {
					return session.Outcome{Why: hook.EndDrained, Bound: true}
				}
			}
			return session.Outcome{Why: hook.EndFinished, Bound: true}
		})
		stop := r.run()
		defer stop()
		r.sleep(23 * time.Hour) // the bubble begins at midnight, UTC
		r.send("a", 4)
		r.sleep(90 * time.Minute)
		r.send("a", 2)
		r.send("far", 5)
		r.sleep(10 * time.Minute)
		if r.done("a") != 6 || r.done("far") != 1 {
			t.Errorf("done: %d and %d", r.done("a"), r.done("far"))
		}
		r.want("a", Idle)
		r.want("far", Parked)
	})
}

// TestTheReasonSaysWhatWasSpent: also what a turn that was under way has added.
func TestTheReasonSaysWhatWasSpent(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		spends(r, "a")
		r.agent("a").Budget = config.Budget{Hour: config.Allowance{Turns: 2}}
		r.set("a", func(f *fakeSession) session.Outcome { // it is too fast to be told
			time.Sleep(boot)
			for range 4 {
				f.take(time.Millisecond)
			}
			return session.Outcome{Why: hook.EndDrained, Bound: true}
		})
		r.send("a", 10)
		stop := r.run()
		defer stop()
		r.sleep(10 * time.Minute)
		if a := r.state("a"); a.Reason.String() != "its budget for the hour is spent: 4 of 2 turns" || r.done("a") != 4 {
			t.Errorf("%q, %d done", a.Reason, r.done("a"))
		}
		if over := r.journal(journal.OverBudget); len(over) != 1 {
			t.Errorf("journal: %+v", over)
		}
	})
}

// TestWhatAShimRecordsAtItsEndCounts: that of an earlier run, which ended after this
// one had read what was spent.
func TestWhatAShimRecordsAtItsEndCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		spends(r, "a")
		r.agent("a").Budget = config.Budget{Day: config.Allowance{Turns: 3}}
		r.mkdir(r.dir + "/state")
		at := time.Now()
		one := usage.Record{At: at, Agent: "a", Session: "s", Sum: usage.Sum{Turns: 1}}
		usagetest.Add(t, r.dir+"/state", one)
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		usagetest.Write(t, r.opt.Store, one)
		usagetest.Write(t, r.opt.Store, one)
		r.send("a", 5)
		r.sleep(time.Minute)
		r.want("a", Parked)
		if n := r.done("a"); n != 0 || r.state("a").Reason.String() != "its budget for the day is spent: 3 of 3 turns" {
			t.Errorf("%d done, %q", n, r.state("a").Reason)
		}
	})
}

// TestADeadShimTakesNothingBack: what it had reported and not recorded stays spent.
func TestADeadShimTakesNothingBack(t *testing.T) {
	t.Parallel()
	f := &fleet{declared: &config.Fleet{Budget: config.Budget{Day: config.Allowance{Cost: 6}}}, spending: usage.Meters{}}
	m := newMember(&config.Agent{Name: "a", Zone: time.UTC}, time.Now())
	f.members = []*member{m}
	now := time.Now()
	m.Begin("", now)
	m.Launched("s", agent.Runs, now)
	c := course{Scheduler: &Scheduler{fleet: *f}, m: m}
	five := usage.Sum{Turns: 5, Cost: 5}
	c.spent(five, now)
	m.Reports(session.Report{Spent: five}, now)
	c.spent(usage.Sum{Turns: 2, Cost: 2}, now) // by the records
	if got, _ := c.fleet.spending[usage.Purse{}].Within(now.Add(-time.Hour), now.Add(time.Hour), now); got != five {
		t.Errorf("spent: %+v, want %+v", got, five)
	}
}

// TestABudgetIsKeptOverARestart: what earlier runs have spent counts, also of an agent
// that is declared no more.
func TestABudgetIsKeptOverARestart(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		spends(r, "a", "b")
		r.fleet.Budget = config.Budget{Day: config.Allowance{Cost: 100}}
		r.agent("a").Budget = config.Budget{Day: config.Allowance{Turns: 2}}
		r.mkdir(r.dir + "/state")
		time.Sleep(30 * time.Hour) // the bubble begins at midnight
		for agent, n := range map[string]int64{"a": 2, "gone": 90} {
			usagetest.Add(t, r.dir+"/state",
				usage.Record{At: time.Now().Add(-20 * time.Hour), Agent: agent, Session: "s", Sum: usage.Sum{Turns: 1000, Cost: 1000}}, // the day before
				usage.Record{At: time.Now().Add(-time.Hour), Agent: agent, Session: "s", Sum: usage.Sum{Turns: n, Cost: float64(n)}})
		}
		r.send("a", 5)
		r.send("b", 50)
		stop := r.run()
		r.sleep(time.Hour)
		r.want("a", Parked)
		r.want("b", Parked)
		if a, b := r.done("a"), r.done("b"); a != 0 || b < 8 || b > 9 {
			t.Errorf("done: %d and %d", a, b)
		}
		stop()
	})
}

// TestAGroupsBudgetOutlivesItsMembers: what an agent has spent that is not declared any
// more, or has another name or group, was forgotten by its group with the next run.
func TestAGroupsBudgetOutlivesItsMembers(t *testing.T) {
	t.Parallel()
	inBubble(t, "a moved", func(t *testing.T, r *rig) {
		spends(r, "a", "moved")
		r.fleet.Groups = map[string]int{"g": 3}
		r.fleet.Budgets = map[string]config.Budget{"g": {Day: config.Allowance{Cost: 6}}}
		r.agent("a").Group = "g"
		r.mkdir(r.dir + "/state")
		time.Sleep(30 * time.Hour) // the bubble begins at midnight
		for _, agent := range []string{"renamed", "moved"} {
			usagetest.Add(t, r.dir+"/state", usage.Record{At: time.Now().Add(-time.Hour), Agent: agent, Session: "s", Group: "g", Sum: usage.Sum{Cost: 3}})
		}
		r.send("a", 1)
		r.send("moved", 1)
		stop := r.run()
		defer stop()
		r.sleep(10 * time.Minute)
		if a := r.state("a"); a.State != Parked || a.Reason.String() != "the budget of group g for the day is spent: $6.00 of $6.00" {
			t.Errorf("a is %s: %s", a.State, a.Reason)
		}
		if r.done("moved") != 1 {
			t.Errorf("who has left the group: %+v", r.state("moved"))
		}
	})
}

// TestABudgetIsNotBegunAnewBlindly: where records of what was spent could not be read, a
// restart gave each agent its whole budget again. Now there is no run.
func TestABudgetIsNotBegunAnewBlindly(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		spends(r, "a")
		r.mkdir(r.dir + "/state")
		kept, end := storetest.Open(t, r.dir+"/state")
		defer end()
		err := kept.Write(t.Context(), func(c *store.Change) error {
			_, err := c.Do(`ALTER TABLE usage RENAME TO elsewhere`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		r.send("a", 1)
		opt := r.opt
		opt.Fleet, opt.StateDir, opt.Runner, opt.Store, opt.Inboxes = r.fleet, r.dir+"/state", r, kept, r.notify
		opt.Prepare = func(*config.Agent) (launch.Prepared, error) { return launch.Prepared{}, nil }
		if _, err := New(opt).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot read what was spent: ") || len(r.started("a")) != 0 {
			t.Errorf("%d sessions, %v", len(r.started("a")), err)
		}
	})
}

// TestAnEntryOverItsBudgetIsFiled: it is not given again, whatever the policy, and the
// agent goes on with the next one.
func TestAnEntryOverItsBudgetIsFiled(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").OnOrphan = "retry"
		r.send("a", 3)
		first := true
		r.set("a", func(f *fakeSession) session.Outcome {
			if !first {
				return drains(f)
			}
			first = false
			time.Sleep(boot)
			f.work(entry, "do 0")
			in, err := queue.InFlight(r.agent("a"))
			if err != nil || in == nil {
				t.Error("nothing is in flight", err)
				return session.Outcome{Why: hook.EndCrashed}
			}
			return session.Outcome{Why: hook.EndOverBudget, Detail: "the entry has cost $2.01 of $2.00", Bound: true, Delivery: in.DeliveryID}
		})
		stop := r.run()
		defer stop()
		r.sleep(5 * time.Minute)
		if a := r.state("a"); a.Acknowledged != 2 || a.DeadLettered != 1 || a.Failures != 0 || a.State != Idle {
			t.Errorf("%+v", a)
		}
		if dead := r.reasons("a"); !slices.Equal(dead, []inbox.Reason{inbox.OverBudget}) {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

// TestARenamedAgentHasSpentWhatItHad: under another name an agent had its whole budget again, by
// a reload and in the next run.
func TestARenamedAgentHasSpentWhatItHad(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		spends(r, "a")
		r.set("", drains)
		r.agent("a").Budget = config.Budget{Day: config.Allowance{Turns: 3}}
		r.send("a", 20)
		time.Sleep(10 * time.Minute) // the bubble begins at midnight
		stop := r.run()
		r.sleep(20 * time.Minute)
		r.want("a", Parked)
		done := r.done("a")
		rename := func(name string) *config.Fleet {
			renamed := *r.agent("a")
			renamed.Name = name
			return r.with(&renamed)
		}
		if _, err := r.s.Reload(rename("bee")); err != nil {
			t.Fatal(err)
		}
		r.sleep(20 * time.Minute)
		if r.want("bee", Parked); r.done("bee") != 0 {
			t.Errorf("after a reload it has done %d more, and %d before", r.done("bee"), done)
		}
		stop()
		usagetest.Add(t, r.dir+"/state", usage.Record{At: time.Now(), Agent: "bee", Session: "s", Sum: usage.Sum{Turns: 4}}) // our sessions write none
		r.fleet = rename("bug")
		stop = r.run()
		defer stop()
		r.sleep(20 * time.Minute)
		if r.want("bug", Parked); r.done("bug") != 0 {
			t.Errorf("in the next run it has done %d more, and %d before", r.done("bug"), done)
		}
	})
}
