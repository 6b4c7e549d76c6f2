package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// limited is a session that ends at a fault of its account.
func limited(kind string) act {
	return ends(session.Outcome{Why: hook.EndAPIFailure, Detail: kind, Bound: true})
}

func TestAParkedAccountParksAllOfItsAgents(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b c other", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 1
		r.agent("other").Env = map[string]string{"ANTHROPIC_API_KEY": "of another account"}
		for _, name := range []string{"a", "b", "c"} {
			r.set(name, limited("rate_limit"))
			r.send(name, 1)
		}
		stop := r.run()
		defer stop()
		r.sleep(2*boot + 5*time.Second)
		for _, name := range []string{"a", "b", "c"} { // c has not tried: two are enough
			r.want(name, Parked)
		}
		if n := len(r.order()); n != 2 {
			t.Errorf("started %v, want two", r.order())
		}
		if c := r.state("c"); !strings.Contains(c.Reason.String(), "rate_limit") || c.Until.IsZero() {
			t.Errorf("c is parked until %v because %q", c.Until, c.Reason)
		}
		r.send("other", 1) // the only slot is not kept from it
		r.sleep(boot + entry + time.Second)
		if a := r.state("other"); a.Acknowledged != 1 {
			t.Errorf("the agent of another account: %+v", a)
		}
		// When the time is over one agent tries, another each time.
		before := len(r.order())
		r.sleep(time.Hour)
		got := r.order()[before:]
		if len(got) < 4 || got[0] != "c" || !slices.Equal(got[3:4], got[:1]) || got[1] == got[2] {
			t.Errorf("tried the account: %v", got)
		}
		for _, name := range []string{"a", "b", "c"} {
			r.want(name, Parked)
			r.set(name, drains)
		}
		r.sleep(2 * time.Hour)
		for _, name := range []string{"a", "b", "c"} {
			r.want(name, Idle)
		}
	})
}

// TestWhoFailsAloneIsParkedAlone: it was the one that tried the account each
// time, and the others got nothing.
func TestWhoFailsAloneIsParkedAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"rate_limit", "authentication_failed", "billing_error"} {
		inBubble(t, "bad good late", func(t *testing.T, r *rig) {
			r.set("bad", limited(kind))
			for _, name := range []string{"bad", "good"} {
				r.send(name, 1)
			}
			stop := r.run()
			defer stop()
			for range 60 {
				r.sleep(time.Minute)
				r.send("good", 1)
			}
			r.send("late", 1)
			r.sleep(boot + entry + time.Second)
			if n := r.state("good").Acknowledged; n < 59 {
				t.Errorf("%s: the good one has done %d entries in an hour", kind, n)
			}
			if n := r.state("late").Acknowledged; n != 1 {
				t.Errorf("%s: the one that comes late: %+v", kind, r.state("late"))
			}
			r.want("bad", Parked)
			if n := len(r.started("bad")); n < 4 || n > 12 {
				t.Errorf("%s: the bad one was started %d times in an hour", kind, n)
			}
			if why := r.state("bad").Reason.String(); !strings.Contains(why, kind) || !strings.Contains(why, "works for others") {
				t.Errorf("it is parked because %q", why)
			}
		})
	}
}

// TestOneAgentsFailuresHoldBackNobody: one that says at each start that its
// account is limited, which it can make up, had the others wait for each other.
func TestOneAgentsFailuresHoldBackNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, "bad slow good unlucky", func(t *testing.T, r *rig) {
		r.set("bad", limited("rate_limit"))
		r.set("slow", func(f *fakeSession) session.Outcome {
			f.say(hook.Turn)
			<-f.orders
			return session.Outcome{Why: hook.EndFinished, Bound: true}
		})
		r.send("bad", 1)
		r.send("slow", 1)
		stop := r.run()
		defer stop()
		done := 0
		for minute := range 60 {
			r.sleep(time.Minute - boot - entry - time.Second)
			if minute == 30 { // a failure of its own, once
				r.set("unlucky", limited("billing_error"))
				r.send("unlucky", 1)
				r.sleep(boot + time.Second)
				r.set("unlucky", drains)
			}
			r.send("good", 1)
			r.sleep(boot + entry + time.Second)
			if done++; r.state("good").Acknowledged != done {
				t.Fatalf("minute %d: the good one waits: %+v", minute, r.state("good"))
			}
		}
		if a := r.state("unlucky"); a.Acknowledged != 1 {
			t.Errorf("the one that failed once: %+v", a)
		}
	})
}

// TestNoStateOfTheOneThatTriesStopsTheOthers: it is the one that waits longest
// whatever becomes of it.
func TestNoStateOfTheOneThatTriesStopsTheOthers(t *testing.T) {
	t.Parallel()
	tests := map[string]func(r *rig){
		"paused":  func(r *rig) { _, _ = r.s.Pause("b") },
		"removed": func(r *rig) { _, _ = r.s.Reload(r.with(r.agent("a"), r.agent("x"), r.agent("c"))) },
		"crashes": func(r *rig) {
			r.set("b", ends(session.Outcome{Why: hook.EndCrashed, Bound: true}))
		},
		"cannot be started": func(r *rig) { r.agent("b").EnvFile = "/nowhere" },
		"works for long": func(r *rig) {
			r.set("b", func(f *fakeSession) session.Outcome {
				f.say(hook.Turn)
				<-f.orders
				return session.Outcome{Why: hook.EndFinished, Bound: true}
			})
		},
	}
	for name, becomes := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a x b c", func(t *testing.T, r *rig) {
				for _, name := range []string{"a", "x"} {
					r.set(name, limited("rate_limit"))
					r.send(name, 1)
				}
				stop := r.run()
				defer stop()
				r.sleep(2*boot + 5*time.Second)
				r.want("x", Parked)
				becomes(r)
				for _, agent := range []string{"b", "c"} {
					if slices.ContainsFunc(r.s.Snapshot(), func(s status.AgentState) bool { return s.Agent == agent }) {
						r.send(agent, 1)
					}
				}
				r.sleep(2*time.Minute + account.Patience + boot + entry + 5*time.Second)
				if c := r.state("c"); c.Acknowledged != 1 {
					t.Errorf("%+v", c)
				}
			})
		})
	}
}

// TestAPersonKnowsBetter: resume asks the account again at once, and so does a
// definition that changes.
func TestAPersonKnowsBetter(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"resume", "reload"} {
		inBubble(t, "a b", func(t *testing.T, r *rig) {
			for _, name := range []string{"a", "b"} {
				r.set(name, limited("authentication_failed"))
				r.send(name, 1)
			}
			stop := r.run()
			defer stop()
			r.sleep(10 * time.Minute)
			for r.state("a").State != Parked || r.state("b").State != Parked {
				r.sleep(boot) // one of them tries the account just now
			}
			for _, name := range []string{"a", "b"} {
				r.set(name, drains)
			}
			if how == "resume" {
				if _, err := r.s.Resume("a"); err != nil {
					t.Fatal(err)
				}
			} else {
				var with []*config.Agent
				for _, name := range []string{"a", "b"} {
					a := r.declare(name)
					a.Env = map[string]string{"ANTHROPIC_API_KEY": "another"}
					with = append(with, a)
				}
				if _, err := r.s.Reload(r.with(with...)); err != nil {
					t.Fatal(err)
				}
			}
			r.sleep(boot + entry + 2*time.Second)
			for _, name := range []string{"a", "b"} {
				if a := r.state(name); a.Acknowledged != 1 {
					t.Errorf("%s: %+v", how, a)
				}
			}
		})
	}
}

// TestManyAgentsOfOneAccount: a limit costs two sessions and one for each time
// that it is tried, not one for each agent.
func TestManyAgentsOfOneAccount(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("a%02d", i))
	}
	inBubble(t, strings.Join(names, " "), func(t *testing.T, r *rig) {
		over := time.Now().Add(2 * time.Hour)
		r.set("", func(f *fakeSession) session.Outcome {
			if time.Now().Before(over) {
				return limited("rate_limit")(f)
			}
			return drains(f)
		})
		for _, name := range names {
			r.send(name, 1)
		}
		stop := r.run()
		defer stop()
		r.sleep(2 * time.Hour)
		if n := len(r.started("")); n > r.fleet.MaxSessions+10 {
			t.Errorf("%d sessions were started in two hours of a limit", n)
		}
		r.sleep(2 * time.Hour)
		for _, name := range names {
			r.want(name, Idle)
		}
	})
}

// TestWhoIsRemovedWhileItStartsLeavesItsAccount: one that was removed between the
// beginning of its start and the question for its account joined it for good, and
// the others could wait for the one that would never try it.
func TestWhoIsRemovedWhileItStartsLeavesItsAccount(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		r.sleep(time.Second)
		s := r.s
		a := s.fleet.find("a")
		s.mu.Lock()
		a.Begin("", time.Now()) // and nobody carries that out
		a.Remove()
		s.fleet.accounts.Joins("b", "one")
		s.mu.Unlock()
		if (course{s, a, a.Def()}).admitted("one") {
			t.Error("it may start")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fleet.accounts.Share("a", "b") || s.fleet.find("a") != nil || len(s.fleet.members) != 1 {
			t.Errorf("it has joined its account, or is a member still: %d", len(s.fleet.members))
		}
	})
}
