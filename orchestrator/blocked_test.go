package orchestrator

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// obstructed has an agent's preflight find an obstacle while it is there.
func (r *rig) obstructed(there *atomic.Bool) {
	there.Store(true)
	r.opt.Prepare = func(a *config.Agent) (launch.Prepared, error) {
		if a.Name == "a" && there.Load() {
			return launch.Prepared{}, preflight.Client{Agent: a.Name}.Blocked([]preflight.Obstacle{
				{Code: preflight.NotTrusted, Seen: "/a is not trusted", Why: "x", Fix: "heartbeat apply --trust a"},
			})
		}
		return launch.Prepared{}, nil
	}
}

// TestWhatCannotWorkIsNotTried: an agent whose directory was not trusted was
// started six times, for half a minute each, and then held until somebody came.
func TestWhatCannotWorkIsNotTried(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(r *rig){
		"by itself": func(r *rig) { r.sleep(time.Minute) },
		"resume": func(r *rig) {
			if _, err := r.s.Resume("a"); err != nil {
				r.t.Error(err)
			}
		},
		"reload": func(r *rig) {
			if _, err := r.s.Reload(r.fleet); err != nil {
				r.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				var there atomic.Bool
				r.obstructed(&there)
				r.send("a", 1)
				r.send("b", 1)
				stop := r.run()
				defer stop()
				r.sleep(time.Hour)
				r.want("a", Held)
				a := r.state("a")
				if !strings.HasSuffix(a.Reason.String(), " is not trusted") || !a.GoesOn ||
					a.Fix != "heartbeat apply --trust a" || a.Failures != 0 || len(r.started("a")) != 0 {
					t.Errorf("%+v, started %v", a, r.started("a"))
				}
				if r.state("b").Acknowledged != 1 {
					t.Errorf("another agent: %+v", r.state("b"))
				}
				changes := 0
				for _, e := range r.journal(journal.StateChanged) {
					if e.Agent == "a" {
						changes++
					}
				}
				if changes > 2 {
					t.Errorf("the journal tells %d changes of an agent that was held all the time", changes)
				}
				there.Store(false)
				mend(r)
				r.sleep(30 * time.Second)
				if a := r.state("a"); a.Acknowledged != 1 || a.DeadLettered != 0 || len(r.started("a")) != 1 {
					t.Errorf("mended: %+v, started %v", a, r.started("a"))
				}
			})
		})
	}
}

// TestOnceEndsWhereNothingCanWork: it does not wait for somebody to come.
func TestOnceEndsWhereNothingCanWork(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var there atomic.Bool
		r.obstructed(&there)
		r.opt.Once = true
		r.send("a", 1)
		began := time.Now()
		sum := <-r.start(t.Context())
		if took := time.Since(began); took > time.Minute || sum.Verdict() != status.SomeLeft || !strings.Contains(sum.Agents[0].Fix.String(), "apply --trust a") {
			t.Errorf("after %s: %+v", took, sum)
		}
	})
}

// TestAClientThatAsksIsNotStartedAgain: a question at the client's start that
// nobody knew of before cost six sessions of half a minute, and then a person who
// resumed the agent. It holds at once, until what answers it has changed; where
// that cannot be seen, a session tries now and then.
func TestAClientThatAsksIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mend func(r *rig, answers *atomic.Value)
		in   time.Duration // the next start
	}{
		"answered":      {func(_ *rig, answers *atomic.Value) { answers.Store("others") }, time.Minute},
		"nobody knows":  {func(*rig, *atomic.Value) {}, tryAgainLate},
		"a person says": {func(r *rig, _ *atomic.Value) { _, _ = r.s.Resume("a") }, time.Second},
		"reload":        {func(r *rig, _ *atomic.Value) { _, _ = r.s.Reload(r.fleet) }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				var answers atomic.Value
				answers.Store("some")
				r.opt.Prepare = func(*config.Agent) (launch.Prepared, error) {
					return launch.Prepared{Answers: answers.Load().(string)}, nil
				}
				r.set("a", ends(session.Outcome{
					Why: hook.EndStartTimeout, Detail: "the client asks a thing", Asks: &session.Question{What: "a thing", Do: "answer it"},
				}))
				r.send("a", 1)
				stop := r.run()
				defer stop()
				r.sleep(10 * time.Minute)
				r.want("a", Held)
				if a := r.state("a"); len(r.started("a")) != 1 || a.Fix != "answer it" || a.Failures != 0 ||
					!strings.Contains(a.Reason.String(), "the client asks a thing") || !a.GoesOn {
					t.Fatalf("%+v, started %v", a, r.started("a"))
				}
				r.set("a", drains)
				c.mend(r, &answers)
				r.sleep(c.in + time.Second)
				if n := len(r.started("a")); n != 2 {
					t.Errorf("started %d times", n)
				}
				r.sleep(time.Minute)
				if a := r.state("a"); a.Acknowledged != 1 || a.DeadLettered != 0 {
					t.Errorf("mended: %+v", a)
				}
			})
		})
	}
}

// tryAgainLate is when a session is started at the latest although nothing is known
// to have changed.
const tryAgainLate = 21 * time.Minute

// TestWhatCannotWorkIsForeseen: an agent without work was asked only when its first
// prompt came. What is asked before holds it, and nobody else.
func TestWhatCannotWorkIsForeseen(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		var there atomic.Bool
		r.obstructed(&there)
		r.opt.Blocked = func(a *config.Agent) error { _, err := r.opt.Prepare(a); return err }
		stop := r.run()
		defer stop()
		r.s.Foresee()
		r.want("a", Held)
		r.want("b", Idle)
		there.Store(false)
		r.sleep(time.Minute)
		r.want("a", Idle)
		there.Store(true)
		r.fleet = new(*r.fleet)
		r.fleet.Agents = append([]*config.Agent{}, r.fleet.Agents...)
		r.fleet.Agents[0] = new(*r.fleet.Agents[0])
		r.fleet.Agents[0].MaxEntry++
		if _, err := r.s.Reload(r.fleet); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Second)
		r.want("a", Held)
		if n := len(r.started("")); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}
