package orchestrator

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

func (r *rig) mkdir(path string) {
	r.t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		r.t.Fatal(err)
	}
}

func TestWorkIsDoneAndAgentsAreIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.send("a", 3)
		stop := r.run()
		r.sleep(boot + 2*entry + time.Second)
		r.want("a", Running)
		r.want("b", Idle)
		r.sleep(entry)
		r.want("a", Idle)
		if a := r.state("a"); a.Acknowledged != 3 {
			t.Errorf("%d entries done, want 3", a.Acknowledged)
		}
		r.send("b", 1)
		r.sleep(time.Second)
		r.want("b", Running)
		sum := stop()
		if len(r.started("a")) != 1 || len(r.started("b")) != 1 || len(sum.Agents) != 2 {
			t.Errorf("starts %v", r.order())
		}
	})
}

// What no notification told of is noticed at the next look around.
func TestQueuesAreLookedAtNowAndThen(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		synctest.Wait()
		r.mu.Lock()
		r.changed = nil
		r.mu.Unlock()
		r.send("a", 1)
		r.sleep(sweepEvery)
		r.want("a", Running)
	})
}

func TestRestartsBackOffAndThenHold(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", ends(session.Outcome{Why: hook.EndCrashed, Bound: true}))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot + 100*time.Millisecond)
		r.want("a", BackingOff)
		r.sleep(2 * time.Minute)
		r.want("a", Held)
		if got := r.state("a").Reason.String(); !strings.Contains(got, "6 failures within 30m, the last: crashed") {
			t.Errorf("held because %q", got)
		}
		at := r.started("a")
		if len(at) != 6 {
			t.Fatalf("%d starts before it was held, want 6", len(at))
		}
		for i, limit := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second} {
			delay := at[i+1].Sub(at[i]) - boot
			if delay < limit/2 || delay > limit+100*time.Millisecond {
				t.Errorf("back-off %d took %v, want %v to %v", i+1, delay, limit/2, limit)
			}
		}
		r.sleep(2 * time.Hour)
		if n := len(r.started("a")); n != 6 {
			t.Errorf("a held agent was started: %d starts", n)
		}
	})
}

func TestAnAcknowledgementResetsTheBackOff(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", func(f *fakeSession) session.Outcome {
			f.take(entry)
			return session.Outcome{Why: hook.EndCrashed, Bound: true}
		})
		r.send("a", 12) // far more crashes than max-restarts
		stop := r.run()
		defer stop()
		r.sleep(10 * time.Minute)
		r.want("a", Idle)
		if a := r.state("a"); a.Acknowledged != 12 {
			t.Errorf("%d entries done, want 12", a.Acknowledged)
		}
		for i, gap := range gaps(r.started("a")) {
			if gap > entry+3*time.Second {
				t.Errorf("start %d came %v after the one before: the back-off grew", i+1, gap)
			}
		}
	})
}

func TestOldFailuresLeaveTheWindow(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").MaxRestarts, r.agent("a").RestartWindow = 3, 4*time.Second
		r.set("a", ends(session.Outcome{Why: hook.EndCrashed, Bound: true}))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		if a := r.state("a"); a.State == Held {
			t.Errorf("held: %s", a.Reason)
		}
		if last := gaps(r.started("a")); last[len(last)-1] < 2*time.Minute || last[len(last)-1] > 5*time.Minute+boot {
			t.Errorf("the last back-off was %v, want half of 5m to 5m", last[len(last)-1])
		}
	})
}

func TestOneSlotIsShared(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b c", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 1
		for _, name := range []string{"a", "b", "c"} {
			r.send(name, 1)
		}
		stop := r.run()
		defer stop()
		r.sleep(time.Second)
		r.want("a", Running)
		r.want("b", Waiting)
		r.want("c", Waiting)
		r.send("a", 1) // queued behind what others wait for
		r.sleep(5 * time.Minute)
		if got := r.order(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("started %v", got)
		}
		if r.most != 1 {
			t.Errorf("%d sessions at once", r.most)
		}
	})
}

func TestAWaitingSessionYieldsItsSlot(t *testing.T) {
	t.Parallel()
	inBubble(t, "early late needy", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 2
		for _, name := range []string{"early", "late"} {
			r.agent(name).Mode = hook.Persist
			r.set(name, persists)
		}
		r.send("early", 1)
		r.send("late", 2)
		stop := r.run()
		defer stop()
		r.sleep(2 * time.Minute)
		r.want("early", Running)
		r.want("late", Running)
		r.send("needy", 1)
		r.sleep(5 * time.Second)
		r.want("early", Idle) // it waited longest
		r.want("late", Running)
		r.want("needy", Running)
	})
}

func TestATickSessionKeepsItsSlot(t *testing.T) {
	t.Parallel()
	inBubble(t, "a needy", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 1
		r.agent("a").Mode, r.agent("a").OnIdle = hook.Persist, hook.IdleTick
		r.set("a", persists)
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		r.send("needy", 1)
		r.sleep(10 * time.Minute)
		r.want("a", Running)
		r.want("needy", Waiting)
	})
}

func TestOnceEndsWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		act  act
		want status.Verdict
		took time.Duration // at least
	}{
		{"done", drains, status.AllDone, boot + entry},
		{"held", ends(session.Outcome{Why: hook.EndCrashed, Bound: true}), status.SomeLeft, 6 * boot},
		{"parked", ends(session.Outcome{Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true}), status.SomeParked, boot},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				r.opt.Once = true
				r.set("a", tt.act)
				r.send("a", 1)
				began := time.Now()
				sum := <-r.start(t.Context())
				if v := sum.Verdict(); v != tt.want || !sum.Finished {
					t.Errorf("verdict %q, finished %t; want %q", v, sum.Finished, tt.want)
				}
				if took := time.Since(began); took < tt.took || took > tt.took+65*time.Second { // the back-offs are 62s at most
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestOnceThatIsOutOfTimeLetsTurnsFinish: it cut them off.
func TestOnceThatIsOutOfTimeLetsTurnsFinish(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.fleet.ShutdownGrace = time.Minute
		r.opt.Once, r.opt.OnceTimeout = true, boot+entry/2
		r.set("a", func(f *fakeSession) session.Outcome {
			time.Sleep(boot)
			f.take(entry)
			o := f.told()
			if o.Stop || o.Finish == "" {
				t.Errorf("told %+v in the middle of a turn", o)
			}
			return finished(o)
		})
		r.send("a", 2)
		sum := <-r.start(t.Context())
		if a := sum.Agents[0]; sum.Finished || a.Acknowledged != 1 || a.Queued != 1 {
			t.Errorf("finished %t, %+v; want one entry done and one queued", sum.Finished, a)
		}
	})
}

func TestStartsAreSpaced(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f"}
	inBubble(t, strings.Join(names, " "), func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 6
		for _, name := range names {
			r.send(name, 1)
		}
		stop := r.run()
		defer stop()
		r.sleep(30 * time.Second)
		want := []time.Duration{0, 1 * time.Second, 1 * time.Second, 1 * time.Second, 0}
		got := gaps(r.started(""))
		// The last two may start together: the first two are in a turn by then.
		if !slices.Equal(got, want) && !slices.Equal(got, []time.Duration{0, time.Second, time.Second, time.Second, time.Second}) {
			t.Errorf("gaps between starts %v, want about %v", got, want)
		}
	})
}

func TestGroupsBoundTheirAgents(t *testing.T) {
	t.Parallel()
	inBubble(t, "g1 g2 g3 free", func(t *testing.T, r *rig) {
		r.fleet.Groups = map[string]int{"gpu": 1}
		for _, name := range []string{"g1", "g2", "g3"} {
			r.agent(name).Group = "gpu"
			r.send(name, 1)
		}
		r.send("free", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot)
		r.want("g1", Running)
		r.want("g2", Waiting)
		r.want("free", Running) // who waits for the group is not in its way
		r.sleep(5 * time.Minute)
		// The first two start at the same instant.
		if got := r.order(); !slices.Equal(got[2:], []string{"g2", "g3"}) {
			t.Errorf("started %v", got)
		}
	})
}

func TestAWaitingSessionYieldsWithinItsGroup(t *testing.T) {
	t.Parallel()
	inBubble(t, "other g1 g2", func(t *testing.T, r *rig) {
		r.fleet.Groups = map[string]int{"gpu": 1}
		for _, name := range []string{"other", "g1"} {
			r.agent(name).Mode = hook.Persist
			r.set(name, persists)
			r.send(name, 1)
		}
		r.agent("g1").Group, r.agent("g2").Group = "gpu", "gpu"
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		r.send("g2", 1)
		r.sleep(5 * time.Second)
		r.want("g1", Idle)
		r.want("g2", Running)
		r.want("other", Running)
	})
}

// Each of twenty agents that always has work gets its turn.
func TestSlotsAreFair(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 20 {
		names = append(names, "agent-"+string(rune('a'+i)))
	}
	inBubble(t, strings.Join(names, " "), func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 3
		for _, name := range names {
			r.send(name, 12)
			r.set(name, func(f *fakeSession) session.Outcome {
				time.Sleep(boot)
				f.take(entry)
				return session.Outcome{Why: hook.EndReleased, Bound: true}
			})
		}
		stop := r.run()
		defer stop()
		r.sleep(20 * time.Minute)
		least, most := 1000, 0
		for _, name := range names {
			n := len(r.started(name))
			least, most = min(least, n), max(most, n)
		}
		// Sessions that end together queue again in any order, which moves an
		// agent by two places in twenty a round.
		if least < 6 || most-least > 2 {
			t.Errorf("between %d and %d starts for each agent", least, most)
		}
		if r.most != 3 {
			t.Errorf("%d sessions at once, want 3", r.most)
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.send("a", 3)
		stop := r.run()
		r.sleep(boot + entry/2)
		states, err := r.s.Pause("a")
		if err != nil || len(states) != 1 || states[0].State != Running || states[0].Paused.IsZero() {
			t.Fatalf("Pause = %+v, %v", states, err)
		}
		r.sleep(entry)
		r.want("a", Held)
		if a := r.state("a"); a.Acknowledged != 1 || a.Reason != "paused by a person" {
			t.Errorf("%d entries done, %q; want the one that was in its turn", a.Acknowledged, a.Reason)
		}
		stop()

		stop = r.run() // a new run
		r.sleep(time.Minute)
		r.want("a", Held)
		if _, err := r.s.Resume("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(boot + 2*entry + time.Second)
		r.want("a", Idle)
		if a := r.state("a"); a.Acknowledged != 2 || !a.Paused.IsZero() {
			t.Errorf("%+v", a)
		}
		stop()
		stop = r.run()
		defer stop()
		r.want("a", Idle)
	})
}

func TestPauseAll(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		if states, err := r.s.Pause(); err != nil || len(states) != 2 {
			t.Fatalf("Pause = %+v, %v", states, err)
		}
		r.send("a", 1)
		r.send("b", 1)
		r.sleep(time.Hour)
		if got := r.order(); len(got) != 0 {
			t.Errorf("started %v", got)
		}
		if _, err := r.s.Pause("c"); err == nil {
			t.Error("an agent that is not there was paused")
		}
		if _, err := r.s.Resume("a", "c"); err == nil {
			t.Error("an agent that is not there was resumed")
		}
		r.want("a", Held)
		if _, err := r.s.Resume(); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		r.want("a", Idle)
		r.want("b", Idle)
		if e := r.journal("paused"); len(e) != 2 {
			t.Errorf("the journal has %d pauses", len(e))
		}
	})
}

func TestResumeEndsAHold(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", ends(session.Outcome{Why: hook.EndCrashed, Bound: true}))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		r.want("a", Held)
		r.set("a", drains)
		if _, err := r.s.Resume("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		r.want("a", Idle)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("%+v", a)
		}
	})
}

func TestTurnsMayFinishOnShutdown(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.fleet.ShutdownGrace = 30 * time.Second
		r.agent("b").Mode = hook.Persist
		r.set("b", persists)
		r.send("a", 2)
		r.send("b", 1)
		stop := r.run()
		r.sleep(boot + entry + 5*time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("the run took %v to end, want the rest of the turn (15s)", took)
		}
		for _, e := range r.journal("ended") {
			if e.Agent == "a" && e.Acknowledged != 2 || !strings.Contains(e.Reason.String(), agent.FinishShutdown) {
				t.Errorf("%+v", e)
			}
		}
	})
}

func TestShutdownGraceEndsAndSoDoesAskingTwice(t *testing.T) {
	t.Parallel()
	for _, asked := range []int{1, 2} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.fleet.ShutdownGrace = 30 * time.Second
			r.set("a", func(f *fakeSession) session.Outcome {
				for o := range f.orders {
					if o.Stop {
						break
					}
				}
				return session.Outcome{Why: hook.EndShutdown, Bound: true}
			})
			r.send("a", 1)
			stop := r.run()
			r.sleep(time.Second)
			want := 30 * time.Second
			if asked == 2 {
				want = 5 * time.Second
				time.AfterFunc(want, r.s.EndNow)
			}
			began := time.Now()
			stop()
			if took := time.Since(began); took != want {
				t.Errorf("asked %d times the run took %v to end, want %v", asked, took, want)
			}
		})
	}
}

// TestARunThatIsAskedToStopRestartsNothing: while a reload was carried out, which comes
// before the stop, restart and trigger said that they would do what no run did.
func TestARunThatIsAskedToStopRestartsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", stuckOn(inbox.Started, false))
		r.send("a", 1)
		ctx, stop := context.WithCancel(t.Context())
		done := r.start(ctx)
		r.sleep(boot)
		r.s.changing.Lock() // as a reload does
		stop()
		<-r.s.work.Done()
		if _, err := r.s.Restart(false, "a"); !errors.Is(err, errStopping) {
			t.Errorf("restart: %v", err)
		}
		if _, err := r.s.Trigger(t.Context(), "a"); !errors.Is(err, errStopping) {
			t.Errorf("trigger: %v", err)
		}
		r.s.changing.Unlock()
		r.s.EndNow()
		<-done
	})
}

func TestNothingIsWantedOfARunThatStops(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.run()()
		asked := map[string]func() error{
			`cannot pause agent "a"`:            func() error { _, err := r.s.Pause("a"); return err },
			"cannot resume all agents":          func() error { _, err := r.s.Resume(); return err },
			`cannot restart agent "a"`:          func() error { _, err := r.s.Restart(false, "a"); return err },
			`cannot fire triggers of agent "a"`: func() error { _, err := r.s.Trigger(t.Context(), "a"); return err },
			"cannot reload the fleet's file":    func() error { _, err := r.s.Reload(r.fleet); return err },
		}
		for cannot, ask := range asked {
			if err := ask(); !errors.Is(err, errStopping) || err.Error() != cannot+": the scheduler is stopping" {
				t.Errorf("%s: %v", cannot, err)
			}
		}
	})
}
