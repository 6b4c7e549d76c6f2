package orchestrator

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// approved is an until: whose check passes and that people have to agree to.
func approved(names ...string) *config.Until {
	u := config.NewUntil("make", "test")
	u.Approve = names
	return u
}

// asksFor runs a rig whose agent "a" has claimed to be done, until people are asked.
func (r *rig) asksFor(u *config.Until) (stop func()) {
	r.t.Helper()
	r.proves(u, passing)
	r.set("a", claims(time.Minute))
	r.send("a", 1)
	end := r.run()
	r.sleep(10 * time.Minute)
	if len(r.waiting()) != len(u.Approve) {
		r.t.Fatalf("asked: %+v", r.waiting())
	}
	return func() { end() }
}

// held does something with the queue of an agent.
func (r *rig) held(agent string, do func(*inbox.Held) error) {
	r.t.Helper()
	a := r.agent(agent)
	q, err := inbox.Open(inbox.Place{Inbox: a.Inbox, Home: a.Home, Dir: a.Dir, MaxEntry: a.MaxEntry})
	if err != nil {
		r.t.Fatal(err)
	}
	defer q.Close()
	if err := q.Hold(context.Background(), do); err != nil {
		r.t.Fatal(err)
	}
}

// says answers all that waits.
func (r *rig) says(to approval.State) {
	r.t.Helper()
	for _, one := range r.waiting() {
		if _, err := r.s.AnswerApproval(r.t.Context(), one.ID, approval.ByPerson(to, "")); err != nil {
			r.t.Error(err)
		}
	}
}

// TestAYesToAVoidedCheckCountsForNoOther: the agent was worked with after the check, and
// claims again. A yes to what was shown before, also one that is given at the same
// time, is none to what it has done since.
func TestAYesToAVoidedCheckCountsForNoOther(t *testing.T) {
	t.Parallel()
	for name, yes := range map[string]bool{"withdrawn": false, "said at the same time": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				defer r.asksFor(approved("release"))()
				old := r.waiting()[0]
				r.held("a", func(q *inbox.Held) error {
					_, err := q.Void()
					if err == nil {
						_, err = q.Check(inbox.Acknowledgement{Reply: "I am done with something else", Now: time.Now()})
					}
					return err
				})
				if yes {
					err := r.opt.Store.Write(t.Context(), func(c *store.Change) error {
						_, err := approval.Give(c, old.ID, approval.ByPerson(approval.Approved, ""), time.Now())
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				r.sleep(5 * time.Minute)
				if all := r.waiting(); len(all) != 1 || all[0].ID == old.ID || !strings.Contains(all[0].Payload.Raw(), "something else") {
					t.Fatalf("people are asked: %+v", all)
				}
				if len(r.replies("a")) != 0 {
					t.Error("it is done by a yes to another check")
				}
				if was := r.request(old.ID); was.Waits() || was.Yes() != yes {
					t.Errorf("the old request: %+v", was)
				}
				r.says(approval.Approved)
				r.sleep(5 * time.Minute)
				if all := r.replies("a"); len(all) != 1 || r.state("a").Approval != nil {
					t.Errorf("replies: %+v, %+v", all, r.state("a").Approval)
				}
			})
		})
	}
}

// TestOneNoEndsTheOthersQuestions: nothing else keeps the agent from its next iteration.
func TestOneNoEndsTheOthersQuestions(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		u := approved("first", "second")
		u.MaxIterations = 1
		defer r.asksFor(u)()
		second := r.waiting()[slices.IndexFunc(r.waiting(), func(r approval.Request) bool { return r.Name == "second" })]
		if _, err := r.s.AnswerApproval(t.Context(), second.ID, approval.ByPerson(approval.Rejected, "not yet")); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		if dead := r.dead("a"); len(dead) != 1 || !strings.Contains(dead[0].Output, "not yet") {
			t.Errorf("dead letters: %+v", dead)
		}
		if a := r.state("a"); len(r.waiting()) > 0 || a.Approval != nil || a.State != status.Idle {
			t.Errorf("it waits for %+v, %+v", r.waiting(), a)
		}
	})
}

// TestWhatNobodyNeedsIsWithdrawn walks what makes the answer to a request of no use:
// the request ends soon, the journal says why, and the agent is not held.
func TestWhatNobodyNeedsIsWithdrawn(t *testing.T) {
	t.Parallel()
	reload := func(change func(*config.Fleet)) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) {
			next := *r.fleet
			next.Agents = slices.Clone(next.Agents)
			a := *next.Agents[0]
			next.Agents[0] = &a
			change(&next)
			if _, err := r.s.Reload(&next); err != nil {
				t.Fatal(err)
			}
		}
	}
	noneNeeded := "nobody has to agree to that any more"
	for name, c := range map[string]struct {
		own  bool // the agent itself asks
		does func(*testing.T, *rig)
		why  string
	}{
		"until is removed":               {false, reload(func(f *config.Fleet) { f.Agents[0].Until = nil }), noneNeeded},
		"approve is removed":             {false, reload(func(f *config.Fleet) { f.Agents[0].Until = approved() }), noneNeeded},
		"the agent is removed":           {false, reload(func(f *config.Fleet) { f.Agents = f.Agents[1:] }), "the agent was removed"},
		"the agent that asks is removed": {true, reload(func(f *config.Fleet) { f.Agents = f.Agents[1:] }), "the agent was removed"},
		"cancelled": {false, func(t *testing.T, r *rig) {
			if _, err := r.s.Cancel(t.Context(), "", false, "a"); err != nil {
				t.Error(err)
			}
		}, "its prompt was given up (cancelled)"},
		"the queue's record is taken away": {false, func(t *testing.T, r *rig) {
			r.held("a", func(q *inbox.Held) error {
				f, err := q.InFlight()
				if err == nil {
					_, err = q.Verdict(inbox.Verdict{Delivery: f.DeliveryID, Check: f.Check, GiveUp: inbox.MaxTime, Now: time.Now()})
				}
				return err
			})
		}, noneNeeded},
		"what it asked for is a dead letter": {true, func(t *testing.T, r *rig) {
			r.held("a", func(q *inbox.Held) error {
				f, err := q.InFlight()
				if err == nil {
					_, err = q.Verdict(inbox.Verdict{Delivery: f.DeliveryID, Check: f.Check, GiveUp: inbox.MaxTime, Now: time.Now()})
				}
				return err
			})
		}, "its prompt was given up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a other", func(t *testing.T, r *rig) {
				if c.own {
					defer r.asksItself("Deploy?")()
				} else {
					defer r.asksFor(approved("release", "second"))()
				}
				c.does(t, r)
				r.sleep(2 * time.Minute)
				if left := r.waiting(); len(left) > 0 {
					t.Errorf("still waits: %+v", left)
				}
				n := 0
				for _, e := range r.journal(journal.Approval) {
					if e.State == string(approval.Withdrawn) && strings.Contains(e.Reason.Raw(), c.why) {
						n++
					}
				}
				if n == 0 {
					t.Errorf("journal: %+v", r.journal(journal.Approval))
				}
				for _, a := range r.s.Snapshot() {
					if a.Approval != nil {
						t.Errorf("held: %+v", a)
					}
				}
			})
		})
	}
}

// TestWhatNobodyNeedsIsWithdrawnWithoutARun, by whoever looks at the requests.
func TestWhatNobodyNeedsIsWithdrawnWithoutARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*config.Fleet)
		gone   func(approval.Request) string
		why    string
	}{
		"nothing has changed":  {func(*config.Fleet) {}, nil, ""},
		"until is removed":     {func(f *config.Fleet) { f.Agents[0].Until = nil }, nil, "nobody has to agree to that any more"},
		"another name":         {func(f *config.Fleet) { f.Agents[0].Until = approved("boss") }, nil, "nobody has to agree to that any more"},
		"the agent is removed": {func(f *config.Fleet) { f.Agents = nil }, nil, "the agent was removed"},
		"it is undone":         {func(*config.Fleet) {}, func(approval.Request) string { return "undone" }, "undone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.asksFor(approved("release"))()
				next := *r.fleet
				a := *next.Agents[0]
				next.Agents = []*config.Agent{&a}
				c.change(&next)
				if err := consent.Settle(t.Context(), &next, filepath.Join(r.dir, "state"), c.gone); err != nil {
					t.Fatal(err)
				}
				if left := len(r.waiting()); (left == 0) != (c.why != "") {
					t.Errorf("%d wait", left)
				}
				events := r.journal(journal.Approval)
				if last := events[len(events)-1]; c.why != "" && last.Reason.Raw() != "withdrawn: "+c.why {
					t.Errorf("journal: %+v", events)
				}
			})
		})
	}
}

// asksItself runs a rig whose agent "a" asks for an approval in its turn, and ends it.
func (r *rig) asksItself(question string) (stop func()) {
	r.t.Helper()
	checked := r.proves(config.NewUntil("make", "test"), fails("a test fails"), passing)
	r.set("a", r.asking(question, new([]string)))
	r.send("a", 1)
	end := r.run()
	r.sleep(10 * time.Minute)
	if len(r.waiting()) != 1 || checked.n() != 0 {
		r.t.Fatalf("asked: %+v, %d checks", r.waiting(), checked.n())
	}
	return func() { end() }
}

// asking is a session that asks in its first turn on an entry, claims to be done, and
// notes what it is given.
func (r *rig) asking(question string, given *[]string) act {
	return claimsWith(time.Minute, func(f *fakeSession, flight *inbox.InFlight) {
		*given = append(*given, handover.PromptFor(flight.Given()))
		if flight.Iteration == 1 {
			if _, err := r.s.AskApproval(r.t.Context(), f.spec.Agent, approval.Request{Question: foreign.Text(question)}); err != nil {
				r.t.Error(err)
			}
		}
	})
}

// TestAnAnswerIsTheNextHandOver: an agent that asks in a turn whose work has to be proven
// gets the answer before anything is checked, and that is no iteration of the guards.
func TestAnAnswerIsTheNextHandOver(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var given []string
		u := approved("release")
		u.MaxIterations = 1
		checked := r.proves(u, passing)
		r.set("a", r.asking("Deploy?", &given))
		r.send("a", 2)
		stop := r.run()
		defer stop()
		r.sleep(10 * time.Minute)
		if checked.n() != 0 || len(given) != 1 {
			t.Errorf("%d checks, given %q", checked.n(), given)
		}
		r.says(approval.Rejected)
		r.sleep(5 * time.Minute)
		if len(given) != 2 || !strings.HasPrefix(given[1], "[heartbeat: iteration 2 of 2 of this entry. You have asked people, and this is what they say:]") ||
			!strings.Contains(given[1], "Deploy?\n\nIt was rejected by a person. Do not do it.") || !strings.HasSuffix(given[1], given[0]) {
			t.Fatalf("given: %q", given)
		}
		if all := r.waiting(); checked.n() != 1 || len(all) != 1 || all[0].Name != "release" {
			t.Fatalf("%d checks; people are asked: %+v", checked.n(), all)
		}
		r.says(approval.Approved)
		r.sleep(time.Minute)
		if all := r.replies("a"); len(all) != 1 || len(r.dead("a")) != 0 {
			t.Errorf("replies %+v, dead letters %+v", all, r.dead("a"))
		}
	})
}

// TestAnAnswerIsNothingToApprove: its own entry is done when the agent says so, whatever
// its agent's until: says.
func TestAnAnswerIsNothingToApprove(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		checked := r.proves(approved("release"), passing)
		r.set("a", claims(time.Minute))
		stop := r.run()
		defer stop()
		r.s.mu.Lock()
		asked := approval.Request{Agent: "a", Key: r.s.fleet.find("a").key, Question: "Deploy?"} // in a turn of a person's
		r.s.mu.Unlock()
		r.files(asked, time.Now())
		r.sleep(time.Minute)
		r.says(approval.Approved)
		r.sleep(10 * time.Minute)
		if all := r.replies("a"); len(all) != 1 || len(r.waiting()) != 0 || checked.n() != 0 {
			t.Errorf("replies %+v, waiting %+v, %d checks", all, r.waiting(), checked.n())
		}
	})
}
