package orchestrator

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/status"
)

// TestARunningCheckEndsWhenNothingAsksForIt: one whose until: had changed ran on to its
// time-out. It walks what may happen to an agent and its entry while one runs.
func TestARunningCheckEndsWhenNothingAsksForIt(t *testing.T) {
	t.Parallel()
	until := func(minutes int) *config.Until {
		u := config.NewUntil("make", "test")
		u.CheckTimeout = time.Duration(minutes) * time.Minute
		return u
	}
	with := func(r *rig, u *config.Until) {
		a := r.declare("a")
		a.Until = u
		if _, err := r.s.Reload(r.with(a, r.declare("b"))); err != nil {
			r.t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		happens func(r *rig)
		goesOn  bool // with the check that runs
		anew    bool // another one is made
	}{
		"nothing":                 {func(*rig) {}, true, false},
		"it is paused":            {func(r *rig) { _, _ = r.s.Pause("a") }, true, false},
		"it is resumed":           {func(r *rig) { _, _ = r.s.Resume("a") }, true, false},
		"another one has changed": {func(r *rig) { with(r, until(60)) }, true, false},
		"until has changed":       {func(r *rig) { with(r, until(61)) }, false, true},
		"until is gone":           {func(r *rig) { with(r, nil) }, false, false},
		"it is removed":           {func(r *rig) { _, _ = r.s.Reload(r.with(r.declare("b"))) }, false, false},
		"its entry is cancelled":  {func(r *rig) { r.cancel(false, CancelDead) }, false, false},
		"its entry is dropped": {func(r *rig) {
			for _, path := range inbox.FlightFiles(r.agent("a").Inbox) {
				_ = os.Remove(path)
			}
		}, false, false},
		"its directory is lost": {func(r *rig) {
			if err := os.Rename(r.agent("a").Dir, r.agent("a").Dir+".gone"); err != nil {
				r.t.Error(err)
			}
		}, false, false},
		"its directory is another one": {func(r *rig) { r.replace("a") }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				r.agent("a").Until = until(60)
				var begun, ended, live atomic.Int32
				r.opt.Check = func(ctx context.Context, c proof.Check) (proof.Result, error) {
					if begun.Add(1); live.Add(1) > 1 {
						r.t.Error("two checks at once")
					}
					defer live.Add(-1)
					select {
					case <-ctx.Done():
						ended.Add(1)
						return proof.Result{}, context.Cause(ctx)
					case <-time.After(c.Timeout):
						return proof.Result{Answer: proof.Failed}, nil
					}
				}
				r.set("a", claims(entry))
				r.send("a", 1)
				stop := r.run()
				defer stop()
				r.sleep(time.Minute)
				r.want("a", status.Checking)
				c.happens(r)
				r.sleep(10 * time.Second)
				if (ended.Load() == 0) != c.goesOn || live.Load() == 1 != (c.goesOn || c.anew) {
					t.Errorf("%d checks begun, %d of them ended", begun.Load(), ended.Load())
				}
				for _, e := range r.journal("check") {
					if e.Verdict != "passed" { // until is gone
						t.Errorf("the journal has the verdict %+v", e)
					}
				}
			})
		})
	}
}

// TestAPauseEndsNoCheck, and a verdict that comes meanwhile is applied: the next
// iteration begins when the agent is resumed.
func TestAPauseEndsNoCheck(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(config.NewUntil("make"), asksLater, fails("a test fails"), passing)
		r.set("a", claims(entry))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry + time.Second)
		if _, err := r.s.Pause("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Hour)
		if f := r.inFlight("a"); f == nil || f.State != inbox.Unproven || len(r.started("a")) != 1 {
			t.Fatalf("in flight %+v, after %d sessions", f, len(r.started("a")))
		}
		if _, err := r.s.Resume("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Hour)
		if len(r.replies("a")) != 1 {
			t.Error("it is not done")
		}
	})
}

// TestACheckWithoutAnAnswerIsToldOf: "again later" was repeated for ever, and nobody was
// told; and a check that cannot be run was well again whenever it was tried.
func TestACheckWithoutAnAnswerIsToldOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer proof.Result
		soon   bool // told at once
	}{"asks to be asked later": {asksLater, false}, "cannot be run": {cannotRun, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.agent("a").StuckAfter = 30 * time.Minute
				answers := []proof.Result{c.answer}
				checks := r.proves(config.NewUntil("make"), answers...)
				slow := r.opt.Check
				r.opt.Check = func(ctx context.Context, c proof.Check) (proof.Result, error) {
					time.Sleep(time.Second)
					return slow(ctx, c)
				}
				r.set("a", claims(entry))
				r.send("a", 1)
				told := func() *status.Trouble {
					all := status.Agent{AgentState: r.state("a")}.Troubles("heartbeat", time.Now())
					if i := slices.IndexFunc(all, func(t status.Trouble) bool { return t.What == status.CheckFails }); i >= 0 {
						return &all[i]
					}
					return nil
				}
				stop := r.run()
				r.sleep(time.Minute)
				began := time.Now()
				if (told() != nil) != c.soon {
					t.Errorf("after a minute: %+v", told())
				}
				r.sleep(29 * time.Minute)
				stop()
				stop = r.run()
				defer stop()
				for range 600 { // also while it runs once more
					r.sleep(time.Second)
					if now := told(); time.Since(began) > 31*time.Minute && (now == nil || began.Sub(now.Since).Abs() > time.Minute) {
						t.Fatalf("after %s: %+v", time.Since(began), now)
					}
				}
				if v := r.state("a").Proof.Vain; v == nil || v.Times != checks.n() {
					t.Errorf("%+v, after %d checks", v, checks.n())
				}
				if got := r.verdicts(); len(got) > 2 {
					t.Errorf("the journal has %v", got)
				}
				checks.mu.Lock()
				checks.answers = []proof.Result{passing}
				checks.asked = nil
				checks.mu.Unlock()
				r.sleep(10 * time.Minute)
				if now := told(); now != nil || len(r.replies("a")) != 1 {
					t.Errorf("it is done: %+v", now)
				}
			})
		})
	}
}
