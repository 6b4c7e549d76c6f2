package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// queue runs act on the queue of a session, as a hook does.
func (f *fakeSession) queue(act func(q *inbox.Held) error) error {
	q, err := inbox.Open(inbox.Place{Inbox: f.spec.Inbox, Home: f.spec.Home})
	if err != nil {
		return err
	}
	defer q.Close()
	return q.Hold(context.Background(), act)
}

// interrupts is a session that takes an entry, or goes on with one, gets as far
// as a state, and is ended by a failure of the API.
func interrupts(kind string, at inbox.State) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		o := session.Outcome{Why: hook.EndAPIFailure, Detail: kind, Bound: true}
		var flight *inbox.InFlight
		err := f.queue(func(q *inbox.Held) (err error) {
			if f.spec.GoOn != "" {
				if _, err = q.Rebind(f.spec.GoOn, inbox.Offering{Session: f.spec.Session}); err == nil {
					_, err = q.GoesOn("P")
				}
			} else {
				var e *inbox.Entry
				if e, err = q.Next(); err == nil {
					_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session})
				}
			}
			if err == nil {
				flight, err = q.Advance(at, "P")
			}
			if err == nil && at != inbox.Offered {
				_, err = q.Fail(kind)
			}
			return err
		})
		if err != nil {
			f.r.t.Error(err)
			return o
		}
		o.Delivery = flight.DeliveryID
		f.say(hook.Turn)
		time.Sleep(entry)
		return o
	}
}

// goesOn is a session that goes on with what was interrupted, and then drains.
// It notes what it was started with.
func goesOn(specs *[]session.Spec) act {
	return func(f *fakeSession) session.Outcome {
		*specs = append(*specs, f.spec)
		if f.spec.GoOn != "" {
			err := f.queue(func(q *inbox.Held) error {
				_, err := q.Rebind(f.spec.GoOn, inbox.Offering{Session: f.spec.Session})
				if err == nil {
					_, err = q.GoesOn("P")
				}
				if err == nil {
					_, err = q.Acknowledge(inbox.Acknowledgement{Session: f.spec.Session, Now: time.Now()})
				}
				return err
			})
			if err != nil {
				f.r.t.Error(err)
			}
			f.acknowledged++
		}
		return drains(f)
	}
}

// inFlight is the entry in flight of an agent, or nil.
func (r *rig) inFlight(agent string) *inbox.InFlight {
	r.t.Helper()
	q, err := queue.Open(r.agent(agent))
	if err != nil {
		r.t.Fatal(err)
	}
	defer q.Close()
	f, err := q.Peek()
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// TestWhatPassesIsNoOrphan walks the failures that pass, the states of an entry
// and what is declared for orphans: it was filed as interrupted once a tool had
// run, and given again where that is allowed. A third of the combinations, by
// the sample, and all of them with -full.
func TestWhatPassesIsNoOrphan(t *testing.T) {
	t.Parallel()
	policies := []inbox.OrphanPolicy{inbox.Retry, inbox.DeadLetter, inbox.Drop}
	turn := testbed.Turn(t, len(policies))
	for i, kind := range []string{"rate_limit", "authentication_failed", "billing_error", "server_error", "overloaded", "account_on_hold"} {
		for j, state := range []inbox.State{inbox.Taken, inbox.Started, inbox.Background} {
			// Of the policies one for each pair, and of each state and policy some kinds.
			for p := (turn + i + j) % testbed.Stride(len(policies)); p < len(policies); p += testbed.Stride(len(policies)) {
				policy := policies[p]
				inBubble(t, "a", func(t *testing.T, r *rig) {
					r.agent("a").OnOrphan = policy
					r.set("a", interrupts(kind, state))
					r.send("a", 2)
					stop := r.run()
					r.sleep(3 * time.Hour) // again and again
					if f := r.inFlight("a"); f == nil || f.State != state || f.Attempt != 1 || f.Repeats != 0 || len(r.reasons("a")) != 0 {
						t.Errorf("%s, %s, %s: in flight %+v, dead letters %q", kind, state, policy, f, r.reasons("a"))
					}
					stop()
					var specs []session.Spec
					r.set("a", goesOn(&specs))
					stop = r.run() // also by another run
					r.sleep(2 * time.Hour)
					stop()
					if a := r.state("a"); a.Acknowledged != 2 || len(r.reasons("a")) != 0 {
						t.Errorf("%s, %s, %s: %+v", kind, state, policy, a)
					}
					if len(specs) == 0 || specs[0].Resume == "" || specs[0].GoOn == "" {
						t.Errorf("%s, %s, %s: it did not go on: %+v", kind, state, policy, specs)
					}
				})
			}
		}
	}
}

// TestWhereAnInterruptedEntryGoesOn: in the conversation that the sessions had,
// by what the state directory says, and nowhere else.
func TestWhereAnInterruptedEntryGoesOn(t *testing.T) {
	t.Parallel()
	kept := func(r *rig, statement string) {
		storetest.Write(r.t, filepath.Join(r.dir, "state"), func(c *store.Change) error {
			if n, err := c.Do(statement); n != 1 || err != nil {
				r.t.Errorf("%d changed, %v", n, err)
			}
			return nil
		})
	}
	for name, tt := range map[string]struct {
		meanwhile func(r *rig)
		goesOn    bool
		reasons   []inbox.Reason
	}{
		"nothing happened":            {func(*rig) {}, true, nil},
		"the session's record forged": {func(r *rig) { r.put("a/.heartbeat/session.json", `{"ruling":{"why":"crashed"}}`) }, true, nil},
		"the state is gone":           {func(r *rig) { kept(r, `DELETE FROM conversations`) }, false, []inbox.Reason{inbox.Interrupted}},
		"of another session":          {func(r *rig) { kept(r, `UPDATE conversations SET id = 'X', session = 'Y'`) }, false, []inbox.Reason{inbox.Interrupted}},
		"of another directory":        {func(r *rig) { kept(r, `UPDATE conversations SET dir = '/not'`) }, false, []inbox.Reason{inbox.Interrupted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", interrupts("rate_limit", inbox.Started))
				r.send("a", 1)
				stop := r.run()
				r.sleep(boot + entry + time.Second)
				first := r.inFlight("a").Session
				stop()
				tt.meanwhile(r)
				var specs []session.Spec
				r.set("a", goesOn(&specs))
				stop = r.run()
				r.sleep(time.Hour)
				stop()
				if went := len(specs) > 0 && specs[0].GoOn != "" && specs[0].Resume == first; went != tt.goesOn {
					t.Errorf("started %+v, want to go on: %t", specs, tt.goesOn)
				}
				if got := r.reasons("a"); !slices.Equal(got, tt.reasons) {
					t.Errorf("dead letters %q, want %q", got, tt.reasons)
				}
			})
		})
	}
}

func (r *rig) put(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// TestASessionThatDoesNotGoOnKeepsTheEntry: one that was killed before it had
// the prompt; a client that no more knows the conversation does not.
func TestASessionThatDoesNotGoOnKeepsTheEntry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		second session.Outcome
		kept   bool
	}{
		"no start":              {session.Outcome{Why: hook.EndStartTimeout}, true},
		"killed at its start":   {session.Outcome{Why: hook.EndCrashed, Bound: true}, true},
		"the scheduler stops":   {session.Outcome{Why: hook.EndShutdown, Bound: true}, true},
		"it is not there":       {session.Outcome{Why: hook.EndExited, ExitCode: 1, Screen: "No conversation found with session ID: x", Bound: true}, false},
		"it cannot be read":     {session.Outcome{Why: hook.EndExited, ExitCode: 1, Screen: "Failed to resume session x"}, false},
		"another error, exit 1": {session.Outcome{Why: hook.EndExited, ExitCode: 1, Screen: "invalid settings"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", interrupts("server_error", inbox.Started))
				r.send("a", 1)
				stop := r.run()
				r.sleep(boot + entry + time.Millisecond)
				r.set("a", ends(tt.second))
				r.sleep(10 * time.Second)
				stop()
				if f := r.inFlight("a"); (f != nil) != tt.kept {
					t.Errorf("in flight %+v, want it kept: %t", f, tt.kept)
				}
				if dead := r.reasons("a"); (len(dead) == 1) == tt.kept {
					t.Errorf("dead letters %q", dead)
				}
			})
		})
	}
}

// TestWhatAPersonHasToPutRightGoesOnAfterwards: a model that is withdrawn in the
// middle of work holds the agent, and costs the entry nothing.
func TestWhatAPersonHasToPutRightGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"model_not_found", "configuration"} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.set("a", interrupts(kind, inbox.Started))
			r.send("a", 2)
			stop := r.run()
			defer stop()
			r.sleep(2 * time.Hour)
			r.want("a", Held)
			if f := r.inFlight("a"); f == nil || f.Attempt != 1 || len(r.reasons("a")) != 0 {
				t.Fatalf("%s: in flight %+v, dead letters %q", kind, f, r.reasons("a"))
			}
			var specs []session.Spec
			r.set("a", goesOn(&specs))
			if _, err := r.s.Resume("a"); err != nil {
				t.Fatal(err)
			}
			r.sleep(time.Minute)
			if a := r.state("a"); a.Acknowledged != 2 || len(specs) == 0 || specs[0].GoOn == "" {
				t.Errorf("%s: %+v, started %+v", kind, a, specs)
			}
		})
	}
}

// TestOnceWaitsForWhatGoesOn: nothing is queued, but something is in flight.
func TestOnceWaitsForWhatGoesOn(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]status.Verdict{"server_error": status.AllDone, "rate_limit": status.SomeParked} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.opt.Once = true
			var specs []session.Spec
			first := true
			r.set("a", func(f *fakeSession) session.Outcome {
				if first {
					first = false
					return interrupts(kind, inbox.Started)(f)
				}
				return goesOn(&specs)(f)
			})
			r.send("a", 1)
			sum := <-r.start(t.Context())
			if v := sum.Verdict(); v != want {
				t.Errorf("%s: verdict %q, want %q", kind, v, want)
			}
		})
	}
}

// TestAnEntryThatMayBeAtFaultGoes: a failure that the client cannot tell held the
// agent, and what stood behind it waited for a person. Where it is not the
// entries, the agent is held after a few.
func TestAnEntryThatMayBeAtFaultGoes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind  string
		bad   int // of six entries, the first
		dead  int
		state status.State
	}{
		"one":                       {"unknown", 1, 1, Idle},
		"three in a row":            {"unknown", 3, 3, Idle},
		"all of them":               {"unknown", 6, 3, Held},
		"a model that is not there": {"model_not_found", 1, 0, Held},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", func(f *fakeSession) session.Outcome {
					if f.spec.GoOn != "" {
						return interrupts(tt.kind, inbox.Taken)(f)
					}
					time.Sleep(boot)
					for {
						var e *inbox.Entry
						err := f.queue(func(q *inbox.Held) (err error) { e, err = q.Next(); return err })
						if err != nil {
							return session.Outcome{Why: hook.EndDrained, Bound: true}
						}
						bad := slices.ContainsFunc([]string{"do 0", "do 1", "do 2", "do 3", "do 4", "do 5"}[:tt.bad], func(p string) bool { return e.Prompt == p })
						if bad {
							return interrupts(tt.kind, inbox.Taken)(f)
						}
						if !f.take(entry) {
							return session.Outcome{Why: hook.EndDrained, Bound: true}
						}
					}
				})
				r.send("a", 6)
				stop := r.run()
				defer stop()
				r.sleep(6 * time.Hour)
				r.want("a", tt.state)
				dead := r.reasons("a")
				if len(dead) != tt.dead || slices.ContainsFunc(dead, func(why inbox.Reason) bool { return why != inbox.Poison }) {
					t.Errorf("dead letters %q, want %d of poison", dead, tt.dead)
				}
				if n := r.state("a").Acknowledged; tt.state == Idle && n != 6-tt.bad {
					t.Errorf("%d entries done", n)
				}
			})
		})
	}
}

// TestWorkThatDoesNotMoveIsTold once, after stuck-after, until it moves.
func TestWorkThatDoesNotMoveIsTold(t *testing.T) {
	t.Parallel()
	for after, told := range map[time.Duration]bool{config.DefaultStuckAfter: true, 0: false} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.agent("a").StuckAfter = after
			r.set("a", interrupts("server_error", inbox.Started))
			r.send("a", 1)
			stop := r.run()
			defer stop()
			r.sleep(config.DefaultStuckAfter - time.Minute)
			if a := r.state("a"); a.NeedsPerson() || len(r.journal("stuck")) != 0 {
				t.Errorf("told too early: %+v", a)
			}
			r.sleep(3 * time.Hour)
			if a := r.state("a"); a.NeedsPerson() != told || told && a.Stuck == nil || (len(r.journal("stuck")) == 1) != told {
				t.Errorf("stuck-after %v: %+v, told %d times", after, a.Stuck, len(r.journal("stuck")))
			}
			var specs []session.Spec
			r.set("a", goesOn(&specs))
			r.sleep(10 * time.Minute)
			if a := r.state("a"); a.NeedsPerson() || a.Stuck != nil || a.Acknowledged != 1 {
				t.Errorf("it moves: %+v", a)
			}
		})
	}
}

// TestDroppedWorkIsNotStuck: what a person had dropped was told of until another
// session ended.
func TestDroppedWorkIsNotStuck(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").StuckAfter = config.DefaultStuckAfter
		r.set("a", interrupts("server_error", inbox.Offered))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(3 * time.Hour)
		if a := r.state("a"); a.Stuck == nil || !a.NeedsPerson() {
			t.Fatalf("it is not stuck: %+v", a)
		}
		for r.state("a").State != BackingOff { // no session has the entry
			r.sleep(time.Second)
		}
		q, err := queue.Open(r.agent("a"))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		all, err := q.List(10)
		if err != nil || len(all) != 1 {
			t.Fatalf("queued: %v, %v", all, err)
		}
		if _, err := queue.Drop(t.Context(), r.agent("a"), []string{all[0].DeliveryID}); err != nil {
			t.Fatal(err)
		}
		r.sleep(10 * time.Minute)
		if a := r.state("a"); a.State != Idle || a.Stuck != nil || a.NeedsPerson() {
			t.Errorf("%s, %+v", a.State, a.Stuck)
		}
	})
}

// TestWhatASessionOfAKilledRunTakesLaterIsRecovered: the next run had recovered all there
// was when the session of a killed one, which was just starting, took its entry and ended.
// Nobody saw that entry until the next prompt came.
func TestWhatASessionOfAKilledRunTakesLaterIsRecovered(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		if _, err := r.s.Pause("a"); err != nil {
			t.Fatal(err)
		}
		r.send("a", 1)
		r.take("a")
		if _, err := r.s.Resume("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		all := r.outbox("a")
		if len(all) != 1 || all[0].Attempt != 2 {
			t.Errorf("%+v, want the entry, done at its second attempt", all)
		}
		if a := r.state("a"); a.State != Idle || a.Failures != 0 {
			t.Errorf("%+v, want an agent that has not failed", a)
		}
	})
}

// take takes an agent's next entry as a session does that then ends.
func (r *rig) take(agent string) {
	r.t.Helper()
	q, err := queue.Open(r.agent(agent))
	if err != nil {
		r.t.Fatal(err)
	}
	defer q.Close()
	err = q.Hold(r.t.Context(), func(h *inbox.Held) error {
		e, err := h.Next()
		if err == nil {
			_, err = h.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: "of a killed run"})
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
