package orchestrator

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestACrashLoopIsHeldInTheNextRunToo: a restart of the scheduler spent all the
// restarts again, six paid sessions maybe, each time that somebody or the service
// manager started it.
func TestACrashLoopIsHeldInTheNextRunToo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(r *rig)
		held    bool
	}{
		"nothing changed":            {func(*rig) {}, true},
		"it stands elsewhere":        {func(r *rig) { r.agent("a").Line = 7; r.agent("a").File = "/moved.yaml" }, true},
		"another definition":         {func(r *rig) { r.agent("a").MaxEntry++ }, false},
		"killed before it was kept":  {func(r *rig) { r.forgetHolds() }, false},
		"resumed":                    {func(r *rig) { r.resumedInARunBetween() }, false},
		"removed, and declared anew": {func(r *rig) { r.ranWithout("a") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				r.set("a", ends(session.Outcome{Why: hook.EndCrashed, Detail: "a crash", Bound: true}))
				r.agent("a").OnOrphan = "retry"
				r.send("a", 1)
				stop := r.run()
				r.sleep(time.Hour)
				r.want("a", Held)
				before := r.state("a")
				stop()
				tries := len(r.started("a"))
				c.between(r)
				r.send("b", 1)
				began := len(r.started("a"))
				stop = r.run()
				r.sleep(time.Hour)
				r.want("a", Held)
				a, more := r.state("a"), len(r.started("a"))-began
				switch {
				case c.held && (more != 0 || !a.Since.Equal(before.Since.Truncate(time.Millisecond)) || a.Reason != before.Reason || !a.Lasts):
					t.Errorf("%d more sessions; it was %+v, and is %+v", more, before, a)
				case !c.held && more != tries:
					t.Errorf("%d sessions, and then %d; want as many", tries, more)
				}
				if r.state("b").Acknowledged != 1 {
					t.Errorf("another agent: %+v", r.state("b"))
				}
				r.set("a", drains)
				if _, err := r.s.Resume("a"); err != nil {
					t.Fatal(err)
				}
				r.sleep(time.Minute)
				if all := r.holds(); len(all) > 0 {
					t.Errorf("the hold is there after it was resumed: %v", all)
				}
				if a := r.state("a"); a.State != Idle || a.Acknowledged != 1 {
					t.Errorf("resumed: %+v", a)
				}
				stop()
			})
		})
	}
}

// TestWhatEndsByItselfIsNotKept: a queue that asks a person, a pause and what
// keeps a session from its start are no hold of the next run: each is asked anew.
func TestWhatEndsByItselfIsNotKept(t *testing.T) {
	t.Parallel()
	inBubble(t, "b", func(t *testing.T, r *rig) {
		r.opt.Prepare = func(*config.Agent) (launch.Prepared, error) {
			return launch.Prepared{}, errors.New("its record is damaged")
		}
		r.send("b", 1)
		stop := r.run()
		r.sleep(20 * time.Minute)
		r.want("b", Held)
		stop()
		if all := r.holds(); len(all) > 0 {
			t.Errorf("kept: %v", all)
		}
	})
}

// TestAQuestionOnTheScreenIsKnownToTheNextRun: it began with another session, which met
// the same question, and said nothing of what waits for a person.
func TestAQuestionOnTheScreenIsKnownToTheNextRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(r *rig, answers *atomic.Value)
		in      time.Duration // how long nothing is started in the next run
	}{
		"nobody has answered": {func(*rig, *atomic.Value) {}, 15 * time.Minute},
		"answered":            {func(_ *rig, answers *atomic.Value) { answers.Store("others") }, 0},
		"another definition":  {func(r *rig, _ *atomic.Value) { r.agent("a").MaxEntry++ }, 0},
		"half an hour later":  {func(r *rig, _ *atomic.Value) { r.sleep(30 * time.Minute) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				var answers atomic.Value
				answers.Store("some")
				r.opt.Prepare = func(*config.Agent) (launch.Prepared, error) {
					return launch.Prepared{Answers: answers.Load().(string)}, nil
				}
				r.set("a", ends(session.Outcome{Why: hook.EndStartTimeout, Asks: &session.Question{What: "a thing", Do: "answer it"}}))
				r.send("a", 1)
				stop := r.run()
				r.sleep(10 * time.Minute)
				before := r.state("a")
				stop()
				c.between(r, &answers)
				r.set("a", drains)
				stop = r.run()
				defer stop()
				r.sleep(c.in)
				if a := r.state("a"); c.in > 0 && (len(r.started("a")) != 1 || a.State != Held || !a.GoesOn || a.Fix != "answer it" || !a.Since.Equal(before.Since.Truncate(time.Millisecond))) {
					t.Errorf("it was %+v, and is %+v, started %v", before, a, r.started("a"))
				}
				r.sleep(7 * time.Minute)
				if a := r.state("a"); len(r.started("a")) != 2 || a.Acknowledged != 1 {
					t.Errorf("%+v, started %v", a, r.started("a"))
				}
				if all := r.holds(); len(all) > 0 {
					t.Errorf("kept: %v", all)
				}
			})
		})
	}
}

// TestAnotherDefinitionEndsTheHoldForGood: also for the runs after.
func TestAnotherDefinitionEndsTheHoldForGood(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", ends(session.Outcome{Why: hook.EndNoHooks}))
		r.send("a", 1)
		stop := r.run()
		r.sleep(time.Minute)
		r.want("a", Held)
		r.set("a", drains)
		r.fleet = new(*r.fleet)
		r.fleet.Agents[0] = new(*r.fleet.Agents[0])
		r.fleet.Agents[0].MaxEntry++
		if _, err := r.s.Reload(r.fleet); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		stop()
		if n := len(r.journal(journal.Ended)); n != 2 {
			t.Errorf("%d sessions", n)
		}
		if all := r.holds(); len(all) > 0 {
			t.Errorf("the hold is kept: %v", all)
		}
	})
}

// holds are those that are kept for the next run.
func (r *rig) holds() map[string]memory.Hold {
	r.t.Helper()
	all, err := store.Ask(r.t.Context(), filepath.Join(r.dir, "state"), memory.ReadHolds)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// forgetHolds is as if the run before had been killed before it kept any.
func (r *rig) forgetHolds() {
	r.t.Helper()
	if all := r.holds(); len(all) != 1 {
		r.t.Errorf("kept: %v", all)
	}
	storetest.Write(r.t, filepath.Join(r.dir, "state"), func(c *store.Change) error { return memory.KeepHold(c, "a", memory.Hold{}) })
}

// resumedInARunBetween resumes agent a in a run that ends before it has failed
// again.
func (r *rig) resumedInARunBetween() {
	stop := r.run()
	if _, err := r.s.Resume("a"); err != nil {
		r.t.Error(err)
	}
	stop()
}

// ranWithout is a run of all agents but one.
func (r *rig) ranWithout(name string) {
	all := r.fleet
	r.fleet = new(*all)
	r.fleet.Agents = nil
	for _, a := range all.Agents {
		if a.Name != name {
			r.fleet.Agents = append(r.fleet.Agents, a)
		}
	}
	r.run()()
	r.fleet = all
}

// TestARunOnceAsksAgainBeforeItEnds: the first run with Once after somebody had typed what
// a hold advised ended with the prompt still queued, as that was not asked again yet. One
// where nothing has changed ends.
func TestARunOnceAsksAgainBeforeItEnds(t *testing.T) {
	t.Parallel()
	for answered, want := range map[string]int{"others": 1, "some": 0} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			var answers atomic.Value
			answers.Store("some")
			r.opt.Prepare = func(*config.Agent) (launch.Prepared, error) {
				time.Sleep(time.Second) // others are asked first
				return launch.Prepared{Answers: answers.Load().(string)}, nil
			}
			r.set("a", ends(session.Outcome{Why: hook.EndStartTimeout, Asks: &session.Question{What: "a thing", Do: "answer it"}}))
			r.send("a", 1)
			r.opt.Once = true
			<-r.start(t.Context())
			answers.Store(answered)
			r.set("a", drains)
			before := time.Now()
			sum := <-r.start(t.Context())
			if a := sum.Agents[0]; a.Acknowledged != want || time.Since(before) > time.Minute {
				t.Errorf("%s: %+v, after %s", answered, a, time.Since(before))
			}
		})
	}
}
