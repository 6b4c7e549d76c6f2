package orchestrator

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/status"
)

// obstructed has an agent's preflight find an obstacle while it is there.
func (r *rig) obstructed(there *atomic.Bool) {
	there.Store(true)
	r.opt.Prepare = func(a *config.Agent) (launch.Prepared, error) {
		if a.Name == "a" && there.Load() {
			return launch.Prepared{}, preflight.Blocked(a.Name, []preflight.Obstacle{
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
			r := newRig(t, "a", "b")
			synctest.Test(t, func(t *testing.T) {
				r.t = t
				var there atomic.Bool
				r.obstructed(&there)
				r.send("a", 1)
				r.send("b", 1)
				stop := r.run()
				defer stop()
				r.sleep(time.Hour)
				r.want("a", Held)
				a := r.state("a")
				if text := a.Reason.String(); !strings.Contains(text, "not trusted; heartbeat apply --trust a") || !strings.Contains(text, "by itself") ||
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
	r := newRig(t, "a")
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		var there atomic.Bool
		r.obstructed(&there)
		r.opt.Once = true
		r.send("a", 1)
		began := time.Now()
		sum := <-r.start(t.Context())
		if took := time.Since(began); took > time.Minute || sum.Verdict() != status.SomeLeft || !strings.Contains(sum.Agents[0].Why(), "apply --trust a") {
			t.Errorf("after %s: %+v", took, sum)
		}
	})
}
