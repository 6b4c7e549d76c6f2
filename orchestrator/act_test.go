package orchestrator

import (
	"context"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// stuckOn is a session that takes an entry, gets as far as a state, and works on it
// until it is told to end; it drains what comes after it. late has it do the entry
// before it hears of a wish to cancel it.
func stuckOn(state inbox.State, late bool) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		var flight *inbox.InFlight
		err := f.queue(func(q *inbox.Held) error {
			e, err := q.Next()
			if err == nil {
				_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session})
			}
			if err == nil {
				flight, err = q.Advance(state, "")
			}
			return err
		})
		if err != nil {
			return session.Outcome{Why: hook.EndDrained, Bound: true}
		}
		f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Work: &hook.Work{DeliveryID: flight.DeliveryID, ID: flight.ID, Attempt: flight.Attempt}}
		for o := range f.orders {
			switch {
			case o.Cancel != nil && late:
				err := f.queue(func(q *inbox.Held) error {
					_, err := q.Acknowledge(inbox.Acknowledgement{Session: f.spec.Session, Now: time.Now()})
					return err
				})
				if err != nil {
					f.r.t.Error(err)
				}
				f.acknowledged++
				f.say(hook.Waiting)
			case o.Stop, o.Cancel != nil:
				return finished(o)
			}
		}
		return session.Outcome{}
	}
}

// cancel cancels what a works on, and checks what comes of it.
func (r *rig) cancel(again bool, want CancelOutcome) Cancelled {
	r.t.Helper()
	all, err := r.s.Cancel(r.t.Context(), "", again, "a")
	if err != nil || len(all) != 1 || all[0].Outcome != want {
		r.t.Fatalf("cancelled %+v, %v, want %s", all, err, want)
	}
	return all[0]
}

// TestCancel: the entry that a person cancels is a dead letter, or the last in the
// queue, whatever its state and its policy; the one behind it goes on.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		for _, state := range []inbox.State{inbox.Offered, inbox.Taken, inbox.Started, inbox.Background} {
			for _, policy := range []inbox.OrphanPolicy{inbox.Retry, inbox.DeadLetter, inbox.Drop} {
				inBubble(t, "a", func(t *testing.T, r *rig) {
					r.agent("a").OnOrphan = policy
					r.set("a", stuckOn(state, false))
					r.send("a", 2)
					stop := r.run()
					r.sleep(boot)
					first := r.inFlight("a")
					r.set("a", drains)
					want, dead, done := CancelDead, 1, 1
					if again {
						want, dead, done = CancelAgain, 0, 2
					}
					if c := r.cancel(again, want); c.Delivery != first.DeliveryID {
						t.Errorf("cancelled %+v, want %s", c, first.DeliveryID)
					}
					r.sleep(time.Minute)
					r.want("a", Idle)
					if a := r.state("a"); a.Acknowledged != done || a.DeadLettered != dead || len(r.reasons("a")) != dead || a.Failures != 0 {
						t.Errorf("%t %s %s: %+v, dead letters %v", again, state, policy, a, r.reasons("a"))
					}
					if dead == 1 && r.reasons("a")[0] != inbox.Cancelled {
						t.Errorf("filed as %v", r.reasons("a"))
					}
					if c := r.cancel(false, CancelNothing); c.Why == "" {
						t.Error("nothing says why there was nothing to cancel")
					}
					if all := r.journal(journal.Cancelled); len(all) != 1 || all[0].Reason != "by a person" {
						t.Errorf("the journal: %+v", all)
					}
					stop()
				})
			}
		}
	}
}

// TestCancelThatComesTooLate: the entry is done by then, and the session goes on.
func TestCancelThatComesTooLate(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", stuckOn(inbox.Started, true))
		r.send("a", 1)
		stop := r.run()
		r.sleep(boot)
		r.cancel(false, CancelFinished)
		r.want("a", Running)
		if c := r.cancel(false, CancelNothing); c.Why != "no turn runs: its session waits for work" {
			t.Errorf("between turns: %q", c.Why)
		}
		if all := r.journal(journal.Cancelled); len(all) != 2 || all[1].Reason != "too late: it had finished" {
			t.Errorf("the journal: %+v", all)
		}
		stop()
	})
}

// TestCancelOfWhatTheServiceHasInterrupted: without a session, and what keeps the
// agent from starting stays.
func TestCancelOfWhatTheServiceHasInterrupted(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"overloaded", "rate_limit"} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.set("a", interrupts(kind, inbox.Started))
			r.send("a", 2)
			stop := r.run()
			r.sleep(boot + entry)
			before := r.state("a")
			if before.State != BackingOff && before.State != Parked {
				t.Fatalf("%+v", before)
			}
			r.set("a", drains)
			r.cancel(false, CancelDead)
			if after := r.state("a"); after.State != before.State || !after.Until.Equal(before.Until) || after.Failures != before.Failures {
				t.Errorf("it was %+v, and is %+v", before, after)
			}
			r.sleep(12 * time.Hour)
			if a := r.state("a"); a.Acknowledged != 1 || len(r.reasons("a")) != 1 {
				t.Errorf("%+v, dead letters %v", a, r.reasons("a"))
			}
			stop()
		})
	}
}

// TestCancelOfAnEntryThatIsNamed leaves another one alone.
func TestCancelOfAnEntryThatIsNamed(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", stuckOn(inbox.Taken, false))
		r.send("a", 1)
		stop := r.run()
		r.sleep(boot)
		f := r.inFlight("a")
		if all, err := r.s.Cancel(t.Context(), "another", false, "a"); err != nil || all[0].Outcome != CancelNothing || all[0].Why != "entry another is not in flight" {
			t.Errorf("%+v, %v", all, err)
		}
		r.want("a", Running)
		if all, err := r.s.Cancel(t.Context(), f.ID, false, "a"); err != nil || all[0].Outcome != CancelDead {
			t.Errorf("%+v, %v", all, err)
		}
		if _, err := r.s.Cancel(t.Context(), "", false, "nobody"); err == nil {
			t.Error("nobody's turn was cancelled")
		}
		stop()
	})
}

// TestWhoDoesNotWaitForACancel: it is carried out all the same.
func TestWhoDoesNotWaitForACancel(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", stuckOn(inbox.Started, false))
		r.send("a", 1)
		stop := r.run()
		r.sleep(boot)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.s.Cancel(ctx, "", false, "a"); err == nil {
			r.sleep(0) // it was quicker
		}
		r.sleep(time.Second)
		if got := r.reasons("a"); len(got) != 1 || got[0] != inbox.Cancelled {
			t.Errorf("dead letters %v", got)
		}
		stop()
	})
}

// TestRestart: a session ends after its turn or, with now, at once; what is left is
// done by another one, and what was in flight goes by its policy.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, now := range []bool{false, true} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.agent("a").OnOrphan, r.agent("a").Mode = inbox.Retry, hook.Persist
			r.set("a", persists)
			if now {
				r.set("a", stuckOn(inbox.Started, false))
			}
			r.send("a", 1)
			stop := r.run()
			r.sleep(boot + entry + 5*time.Second)
			r.set("a", persists)
			if states, err := r.s.Restart(now, "a"); err != nil || len(states) != 1 || states[0].Agent != "a" {
				t.Fatalf("%+v, %v", states, err)
			}
			r.sleep(2 * time.Second)
			if now == (r.state("a").State == Idle) {
				t.Errorf("now %t: %+v", now, r.state("a"))
			}
			if last := r.state("a").Last; last == nil || agent.Describe(*last) != "finished (restarted by a person)" {
				t.Errorf("its session ended by %+v", last)
			}
			r.send("a", 1)
			r.sleep(time.Minute)
			want := 2
			if a := r.state("a"); a.Acknowledged != want || len(r.started("a")) != 2 || a.Failures != 0 || len(r.reasons("a")) != 0 {
				t.Errorf("now %t: %+v, %d sessions", now, a, len(r.started("a")))
			}
			if all := r.journal(journal.Restarted); len(all) != 1 {
				t.Errorf("the journal: %+v", all)
			}
			stop()
			if _, err := r.s.Restart(now); err == nil {
				t.Error("a run that has ended restarts sessions")
			}
		})
	}
}

// TestRestartOfWhoHasNoSession changes nothing.
func TestRestartOfWhoHasNoSession(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.set("b", ends(session.Outcome{Why: hook.EndCrashed, Bound: true}))
		r.send("b", 1)
		stop := r.run()
		r.sleep(boot)
		before := r.state("b")
		if _, err := r.s.Restart(true); err != nil {
			t.Fatal(err)
		}
		r.want("a", Idle)
		if after := r.state("b"); after.State != BackingOff || after.Until != before.Until {
			t.Errorf("it was %+v, and is %+v", before, after)
		}
		if all := r.journal(journal.Restarted); len(all) != 0 {
			t.Errorf("the journal: %+v", all)
		}
		stop()
	})
}
