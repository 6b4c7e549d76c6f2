package orchestrator

import (
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// crashes is a session that ends after d in the middle of its work.
func crashes(d time.Duration) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		o := session.Outcome{Why: hook.EndCrashed, Bound: true}
		err := f.queue(func(q *inbox.Held) error {
			e, err := q.Next()
			if err == nil {
				_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session, Checked: true})
			}
			if err == nil {
				_, err = q.Advance(inbox.Started, "")
			}
			return err
		})
		if err != nil {
			f.r.t.Error(err)
		}
		time.Sleep(d)
		return o
	}
}

// TestUntilIsRemovedFromTheFile while a prompt is worked on: it is done when the agent
// says so, and what was interrupted is left to on-orphan.
func TestUntilIsRemovedFromTheFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does       act
		done, dead int
	}{"claims": {claims(time.Minute), 1, 0}, "crashes": {crashes(time.Minute), 0, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				checks := r.proves(config.NewUntil("make", "test"), fails("a test fails"))
				r.set("a", c.does)
				r.send("a", 1)
				stop := r.run()
				defer stop()
				r.sleep(boot + time.Second)
				if _, err := r.s.Reload(r.with(r.declare("a"))); err != nil {
					t.Fatal(err)
				}
				r.sleep(time.Hour)
				if r.state("a").State == status.Checking || r.inFlight("a") != nil {
					t.Errorf("%+v, in flight %+v", r.state("a"), r.inFlight("a"))
				}
				if checks.n() != 0 || len(r.replies("a")) != c.done || len(r.dead("a")) != c.dead {
					t.Errorf("%d checks, %d replies, dead letters %+v", checks.n(), len(r.replies("a")), r.dead("a"))
				}
			})
		})
	}
}

// TestWhatIsCancelledIsCheckedNoMore: the next prompt does not wait for its check.
func TestWhatIsCancelledIsCheckedNoMore(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(config.NewUntil("make", "test"), asksLater)
		r.set("a", claims(entry))
		r.send("a", 2)
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		r.want("a", status.Checking)
		n := len(r.started("a"))
		r.cancel(false, CancelDead)
		r.sleep(boot)
		r.want("a", Running)
		if len(r.started("a")) != n+1 {
			t.Errorf("%d sessions after %d", len(r.started("a")), n)
		}
	})
}
