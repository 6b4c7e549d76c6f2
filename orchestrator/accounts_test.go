package orchestrator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
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
		if slices.ContainsFunc([]string{"a", "b", "c"}, func(name string) bool { return r.state(name).State == Running }) {
			r.sleep(boot + time.Second) // one just tries: its delay is drawn at random
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
			if kind != "rate_limit" { // that only a person can mend
				r.want("bad", status.Held)
				if n := len(r.started("bad")); n != 1 {
					t.Errorf("%s: the bad one was started %d times", kind, n)
				}
				return
			}
			r.want("bad", status.Parked)
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
		done, failed := 0, false
		for minute := range 60 {
			r.sleep(time.Minute - boot - entry - time.Second)
			// A failure of its own, once: not just when the bad one fails, too, and nobody
			// has worked since, which would be the account's.
			now, bad := time.Now(), r.started("bad")
			alone := now.Sub(bad[len(bad)-1]) > time.Minute && r.state("bad").Until.Sub(now) > time.Minute
			if minute >= 30 && alone && !failed {
				failed = true
				r.set("unlucky", limited("rate_limit"))
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
				r.want("x", status.Parked)
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
			for _, name := range []string{"a", "b"} {
				r.want(name, Held)
				if n := len(r.started(name)); n != 1 {
					t.Errorf("%s was started %d times with a login that is not accepted", name, n)
				}
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
	many := 50 / testbed.Stride(2)
	if testbed.Raced {
		many = 12 // meet each other as more do
	}
	for i := range many {
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

// limitedUntil is a session that a usage limit ends, by what the client says of it.
func limitedUntil(said func() *session.Refused) act {
	return func(f *fakeSession) session.Outcome {
		o := interrupts("rate_limit", inbox.Started)(f)
		o.Refused = said()
		return o
	}
}

// inWords is what client 2.1.329 says of a limit that resets at a time.
func inWords(at time.Time) string {
	return "You've hit your limit · resets " + strings.ToLower(at.UTC().Format("3:04PM")) + " (UTC)"
}

// saidTwice is what both the hook and the transcript have of it.
func saidTwice(at time.Time) *session.Refused {
	return &session.Refused{Told: inWords(at), Written: &client.Refusal{Status: 429, Kind: "rate_limit", Text: inWords(at)}}
}

// night is a fleet on two accounts whose limits fall while all of it is in a turn.
// It counts calls that are refused.
type night struct {
	*rig
	mu     sync.Mutex
	limits map[string]time.Time   // :: account → its reset
	calls  map[string][]time.Time // :: agent → its refused calls
	first  map[string]time.Time   // :: account → the first turn after its reset
	said   func(at time.Time) *session.Refused
}

func accountOf(f *fakeSession) string {
	return client.In(f.spec.Env)("ANTHROPIC_API_KEY")
}

// refuses is a call to the API: false when it is let through.
func (n *night) refuses(f *fakeSession) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, id := time.Now(), accountOf(f)
	at, fell := n.limits[id]
	if fell && now.Before(at) {
		n.calls[f.spec.Agent] = append(n.calls[f.spec.Agent], now)
		return true
	}
	if fell && n.first[id].IsZero() {
		n.first[id] = now
	}
	return false
}

// works is a session whose entries take three calls each, with a tool between them.
func (n *night) works(f *fakeSession) session.Outcome {
	time.Sleep(boot)
	refused := func() session.Outcome {
		if err := f.queue(func(q *inbox.Held) error { _, err := q.Fail("rate_limit"); return err }); err != nil {
			n.t.Error(err)
		}
		return session.Outcome{
			Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true, Refused: n.said(n.limits[accountOf(f)]),
		}
	}
	for first := true; ; first = false {
		if o := f.told(); o.Stop || o.Finish != "" {
			return finished(o)
		}
		err := f.queue(func(q *inbox.Held) (err error) {
			if first && f.spec.GoOn != "" {
				if _, err = q.Rebind(f.spec.GoOn, inbox.Offering{Session: f.spec.Session}); err == nil {
					_, err = q.GoesOn("P")
				}
				return err
			}
			e, err := q.Next()
			if err == nil {
				_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session})
			}
			if err == nil {
				_, err = q.Advance(inbox.Started, "P")
			}
			return err
		})
		if errors.Is(err, inbox.ErrEmpty) {
			return session.Outcome{Why: hook.EndDrained, Bound: true}
		}
		if err != nil {
			n.t.Error(err)
		}
		f.say(hook.Turn)
		for range 3 {
			if n.refuses(f) {
				return refused()
			}
			f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Acknowledged: f.acknowledged, Answered: true}
			time.Sleep(entry)
		}
		err = f.queue(func(q *inbox.Held) error {
			_, err := q.Acknowledge(inbox.Acknowledgement{Session: f.spec.Session, Now: time.Now()})
			return err
		})
		if err != nil {
			n.t.Error(err)
		}
		f.acknowledged++
		f.say(hook.Turn)
	}
}

// TestALimitNight: a five-hour and a weekly limit fall in mid-tool for 16 agents of
// two accounts. A session that was in a turn is refused once at most, and no other;
// the first turn comes within a minute of the reset, whatever it is known by; the
// interrupted conversations go on, no attempt is used up, nothing is repeated or
// given up.
func TestALimitNight(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]func(at time.Time) *session.Refused{
		"the words of both": saidTwice,
		"figures": func(at time.Time) *session.Refused {
			return &session.Refused{Limits: client.Limits{SevenDay: client.Limit{Used: 100, Resets: at}}}
		},
	} {
		var names []string
		for i := range max(8, 16/testbed.Stride(2)) {
			names = append(names, fmt.Sprintf("a%02d", i))
		}
		n := &night{
			rig: newRig(t, names...), limits: map[string]time.Time{}, calls: map[string][]time.Time{}, first: map[string]time.Time{}, said: said,
		}
		n.fleet.MaxSessions = 16
		n.opt.StartEvery = -1
		for i, a := range n.fleet.Agents {
			a.Env = map[string]string{"ANTHROPIC_API_KEY": []string{"one", "two"}[i%2]}
		}
		synctest.Test(t, func(t *testing.T) {
			n.t = t
			n.set("", n.works)
			for _, a := range names {
				n.send(a, 3)
			}
			stop := n.run()
			n.sleep(boot + 3*entry/2) // in mid-tool
			n.mu.Lock()
			fell := time.Now()
			n.limits["one"], n.limits["two"] = fell.Add(4*time.Hour+17*time.Second), fell.Add(7*time.Hour+42*time.Second)
			n.mu.Unlock()
			conversations := map[string]string{}
			n.sleep(2 * time.Hour)
			for _, a := range names {
				n.want(a, Parked)
				if f := n.inFlight(a); f != nil {
					conversations[a] = f.Session
				}
			}
			sum := stop() // and another run, which knows until when
			_ = sum
			stop = n.run()
			defer stop()
			n.sleep(10 * time.Hour)
			refused := 0
			for _, a := range names {
				if refused += len(n.calls[a]); len(n.calls[a]) > 1 {
					t.Errorf("%s: %s was refused %d times: %v", name, a, len(n.calls[a]), n.calls[a])
				}
				if s := n.state(a); s.State != Idle || len(n.reasons(a)) != 0 {
					t.Errorf("%s: %s: %s %s, dead letters %v", name, a, s.State, s.Reason, n.reasons(a))
				}
				done := n.outbox(a)
				if len(done) != 3 {
					t.Errorf("%s: %s has done %d entries", name, a, len(done))
				}
				for _, d := range done {
					if d.Attempt != 1 {
						t.Errorf("%s: %s: attempt %d", name, a, d.Attempt)
					}
				}
			}
			if refused == 0 || len(conversations) != len(names) {
				t.Errorf("%s: %d refused calls, %d interrupted: no limit fell", name, refused, len(conversations))
			}
			for id, at := range n.limits {
				if late := n.first[id].Sub(at); late < 0 || late > time.Minute {
					t.Errorf("%s: the first turn of %s came %v after its reset", name, id, late)
				}
			}
			sources := map[string]bool{}
			for _, e := range n.journal(journal.Refused) {
				sources[e.Source] = true
			}
			if want := map[string]string{"the words of both": "two-signals", "figures": "status-line"}[name]; len(sources) != 1 || !sources[want] {
				t.Errorf("%s: the journal names %v", name, sources)
			}
		})
	}
}

// TestALimitIsKeptWhenItsAgentIsParked: a run that was killed a moment later told the next
// one nothing, which had each conversation refused once more.
func TestALimitIsKeptWhenItsAgentIsParked(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", ends(session.Outcome{
			Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true, Refused: saidTwice(time.Now().Add(time.Hour)),
		}))
		r.send("a", 1)
		defer r.run()()
		for range time.Minute / time.Millisecond {
			if r.sleep(time.Millisecond); r.state("a").State == Parked {
				break
			}
		}
		r.want("a", Parked)
		kept, err := store.Get(t.Context(), r.s.opt.Store.Reader, account.Read)
		if err != nil || len(kept) != 1 {
			t.Errorf("kept: %v, %v", kept, err)
		}
	})
}

// TestWhatFollowsALimit walks what else ends a parking or does not: on-limit: hold
// waits for a person, a new prompt does not, another account works.
func TestWhatFollowsALimit(t *testing.T) {
	t.Parallel()
	inBubble(t, "resumes holds other", func(t *testing.T, r *rig) {
		r.agent("holds").OnLimit = config.LimitHolds
		r.agent("other").Env = map[string]string{"ANTHROPIC_API_KEY": "another"}
		reset := time.Now().Add(3 * time.Hour)
		limitedNow := limitedUntil(func() *session.Refused { return saidTwice(reset) })
		r.set("", limitedNow)
		for _, name := range []string{"resumes", "holds"} {
			r.send(name, 1)
		}
		stop := r.run()
		defer stop()
		r.sleep(boot + entry + 10*time.Second)
		var specs []session.Spec
		r.set("", goesOn(&specs))
		r.want("resumes", status.Parked)
		r.want("holds", status.Held)
		r.send("other", 1)
		r.sleep(boot + entry + time.Second)
		if r.state("other").Acknowledged != 1 {
			t.Errorf("the agent of another account: %+v", r.state("other"))
		}
		before := len(r.started(""))
		r.send("resumes", 1) // a parking whose end is known is not shortened
		r.sleep(2 * time.Hour)
		if n := len(r.started("")); n != before {
			t.Errorf("%d sessions were started before the reset", n-before)
		}
		r.sleep(2 * time.Hour)
		if a := r.state("resumes"); a.Acknowledged != 2 || a.State != status.Idle {
			t.Errorf("after the reset: %+v", a)
		}
		r.want("holds", status.Held)
		if _, err := r.s.Resume("holds"); err != nil {
			t.Fatal(err)
		}
		r.sleep(boot + entry + time.Second)
		if a := r.state("holds"); a.Acknowledged != 1 || a.State != status.Idle {
			t.Errorf("after its resume: %+v", a)
		}
	})
}

// outbox are the entries of an agent that are done.
func (r *rig) outbox(agent string) (all []inbox.Delivery) {
	r.t.Helper()
	q, err := queue.Open(r.agent(agent))
	if err != nil {
		r.t.Fatal(err)
	}
	defer q.Close()
	for d, err := range q.Deliveries() {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// TestRoomIsLeftToPeopleWhenTheirHoursBegin: a live session, also one that waits for
// work, went on in them as long as its client showed nothing new.
func TestRoomIsLeftToPeopleWhenTheirHoursBegin(t *testing.T) {
	t.Parallel()
	inBubble(t, "works waits", func(t *testing.T, r *rig) {
		now := time.Now().UTC() // midnight, a Saturday
		shows := func(then act) act {
			return func(f *fakeSession) session.Outcome {
				time.Sleep(boot)
				f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Told: &client.StatusLine{
					Limits: client.Limits{FiveHour: client.Limit{Used: 96, Resets: now.Add(3 * time.Hour)}},
				}}
				return then(f)
			}
		}
		for name, then := range map[string]act{"works": drains, "waits": persists} {
			r.agent(name).Zone = time.UTC
			r.agent(name).Limits = config.Limits{FiveHour: 95, Active: config.Hours{Days: [7]bool{6: true}, From: 60, To: 120}}
			r.set(name, shows(then))
		}
		r.agent("waits").Mode = hook.Persist
		stop := r.run()
		defer stop()
		r.sleep(55 * time.Minute)
		r.send("works", 30) // ten minutes
		r.send("waits", 1)
		r.sleep(5*time.Minute + sweepEvery + 2*entry)
		before := r.done("works")
		r.send("waits", 1)
		r.sleep(10 * time.Minute)
		for _, name := range []string{"works", "waits"} {
			if a := r.state(name); a.State != status.Parked || !a.Until.Equal(now.Add(2*time.Hour)) {
				t.Errorf("in their hours: %+v", a)
			}
		}
		if r.done("works") != before || r.done("waits") != 1 {
			t.Errorf("done: %d, %d before; %d", r.done("works"), before, r.done("waits"))
		}
		r.sleep(time.Hour)
		if r.done("works") != 30 || r.done("waits") != 2 {
			t.Errorf("after them: %d and %d", r.done("works"), r.done("waits"))
		}
	})
}

// TestRoomIsLeftToPeople: above limits: nothing is started until the window resets or
// the active hours are over, and live sessions end after their turn.
func TestRoomIsLeftToPeople(t *testing.T) {
	t.Parallel()
	inBubble(t, "polite late greedy", func(t *testing.T, r *rig) {
		now := time.Now().UTC() // midnight, a Saturday
		for _, name := range []string{"polite", "late"} {
			r.agent(name).Limits = config.Limits{FiveHour: 95}
			r.agent(name).Zone = time.UTC
		}
		r.agent("late").Limits.Active = config.Hours{Days: [7]bool{6: true}, From: 0, To: 60}
		shows := func(f *fakeSession) session.Outcome {
			time.Sleep(boot)
			f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Told: &client.StatusLine{
				Limits: client.Limits{FiveHour: client.Limit{Used: 96, Resets: now.Add(3 * time.Hour)}},
			}}
			return drains(f)
		}
		r.set("polite", shows)
		r.send("polite", 5)
		stop := r.run()
		defer stop()
		r.send("late", 1)
		r.send("greedy", 1)
		r.sleep(2*boot + 2*entry + 10*time.Second)
		r.want("polite", status.Parked)
		if a := r.state("polite"); a.Acknowledged > 2 || !strings.Contains(a.Reason.String(), "96% of the account's five-hour limit") || !a.Until.Equal(now.Add(3*time.Hour)) {
			t.Errorf("the polite one: %+v", a)
		}
		r.send("late", 1)
		r.sleep(time.Minute)
		if a := r.state("late"); a.State != status.Parked || !a.Until.Equal(now.Add(time.Hour)) {
			t.Errorf("in its hours: %+v", a)
		}
		r.send("greedy", 1)
		r.sleep(time.Hour)
		if a := r.state("greedy"); a.Acknowledged != 2 {
			t.Errorf("without limits: %+v", a)
		}
		if a := r.state("late"); a.State != status.Idle || a.Acknowledged != 2 {
			t.Errorf("after its hours: %+v", a)
		}
		r.want("polite", status.Parked)
		// A resume does not lift it, and nothing says that it does.
		said := status.Agent{AgentState: r.state("polite")}
		advised := said.Troubles("heartbeat", time.Now())
		if len(advised) != 1 || !strings.HasPrefix(advised[0].Do, "heartbeat reload   # after a change of limits: in the file") || strings.Contains(advised[0].Do+advised[0].Then, "resume") {
			t.Errorf("status advises %+v", advised)
		}
		states, err := r.s.Resume("polite")
		if err != nil || len(states) != 1 || states[0].State != status.Parked || !states[0].Until.Equal(now.Add(3*time.Hour)) {
			t.Errorf("resumed: %+v, %v", states, err)
		}
		if do, stays := states[0].Stays("heartbeat"); !stays || do != "raise limits: in the file, then heartbeat reload" {
			t.Errorf("a resume says %q, %v", do, stays)
		}
		r.set("polite", drains)
		r.sleep(2 * time.Hour)
		if a := r.state("polite"); a.State != status.Idle || a.Acknowledged != 5 {
			t.Errorf("after the reset: %+v", a)
		}
	})
}

// TestANewPromptShortensADelay to a minute after the failure, of a back-off and of an
// account of which nothing is known; a trigger's does not, and no prompt shortens a
// parking whose end is known (TestWhatFollowsALimit).
func TestANewPromptShortensADelay(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]session.Outcome{
		"a back-off": {Why: hook.EndAPIFailure, Detail: "server_error", Bound: true},
		"an account": {Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true},
	} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			r.agent("a").MaxRestarts = 100
			r.set("a", ends(o))
			r.send("a", 1)
			stop := r.run()
			defer stop()
			for time.Until(r.state("a").Until) < 4*time.Minute { // its delay has grown
				r.sleep(5 * time.Second)
				if len(r.started("a")) > 50 {
					t.Fatalf("%s: its delay does not grow", name)
				}
			}
			until, since := r.state("a").Until, time.Now()
			before := len(r.started("a"))
			r.sleep(3 * time.Second)
			if n := len(r.started("a")); n != before {
				t.Fatalf("%s: it was tried before its time", name)
			}
			r.send("a", 1)
			r.sleep(time.Minute + 5*time.Second)
			if n := len(r.started("a")); n == before {
				t.Errorf("%s: %v after the new prompt it waits until %v, as before (%v)", name, time.Since(since), r.state("a").Until, until)
			}
		})
	}
}

// TestALiarParksNoOtherAccount: an agent can write all that its client says of a limit.
// What it makes up holds for its own account, for no longer than the longest limit is,
// and for nobody else.
func TestALiarParksNoOtherAccount(t *testing.T) {
	t.Parallel()
	inBubble(t, "liar mate other", func(t *testing.T, r *rig) {
		r.agent("other").Env = map[string]string{"ANTHROPIC_API_KEY": "another"}
		const words = "You've hit your weekly limit · resets Dec 31, 2099, 10pm (UTC)"
		far := time.Date(2099, 12, 31, 22, 0, 0, 0, time.UTC)
		r.set("liar", limitedUntil(func() *session.Refused {
			return &session.Refused{
				Told: words, Written: &client.Refusal{Status: 429, Kind: "rate_limit", Text: words},
				Limits: client.Limits{SevenDay: client.Limit{Used: 100, Resets: far}, FiveHour: client.Limit{Used: 100, Resets: far}},
			}
		}))
		r.send("liar", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry + 10*time.Second)
		for _, name := range []string{"mate", "other"} {
			r.send(name, 1)
		}
		r.sleep(boot + entry + time.Second)
		if a := r.state("mate"); a.State != status.Parked || a.Until.After(time.Now().Add(account.Longest+time.Minute)) {
			t.Errorf("its account's other agent is %s until %v", a.State, a.Until)
		}
		if a := r.state("other"); a.Acknowledged != 1 {
			t.Errorf("another account's agent: %+v", a)
		}
		if !*testbed.Full {
			return // a week of a scheduler; that a parking ends is tried with shorter ones
		}
		r.set("liar", drains)
		r.sleep(account.Longest + 10*time.Minute)
		if a := r.state("mate"); a.Acknowledged != 1 {
			t.Errorf("a week later: %+v", a)
		}
	})
}
