package orchestrator

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
)

// seen is what the sessions of a fleet have worked on, in its order.
type seen struct {
	mu      sync.Mutex
	prompts []string
	resumed []string // for each session, which conversation it went on with
}

// asks is a client that asks for an approval in its first turn, and works on what it
// gets, until it is told to end.
func (s *seen) asks(r *rig, ask approval.Request) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		s.mu.Lock()
		s.resumed = append(s.resumed, f.spec.Resume)
		s.mu.Unlock()
		for {
			switch o := f.told(); {
			case o.Stop && o.Finish == "":
				return session.Outcome{Why: "shutdown", Bound: true}
			case o.Finish != "":
				return finished(o)
			}
			var next *inbox.Entry
			_ = f.queue(func(q *inbox.Held) (err error) { next, err = q.Next(); return err })
			if next != nil && strings.HasPrefix(next.Prompt, "deploy") {
				if _, err := r.s.AskApproval(r.t.Context(), f.spec.Agent, ask); err != nil {
					r.t.Error(err)
				}
			}
			if !f.take(entry) {
				return session.Outcome{Why: "drained", Bound: true}
			}
			s.mu.Lock()
			s.prompts = append(s.prompts, next.Prompt)
			s.mu.Unlock()
		}
	}
}

// say queues a prompt.
func (r *rig) say(agent, prompt string) {
	r.t.Helper()
	r.mkdir(r.declare(agent).Home)
	if _, err := queue.Append(r.t.Context(), r.declare(agent), inbox.Letter{Source: "send", Prompt: prompt}); err != nil {
		r.t.Fatal(err)
	}
	r.tell(agent)
}

// requests are those that an agent has made, as the rig's store has them.
func (r *rig) requests(of func(*store.View) ([]approval.Request, error)) []approval.Request {
	r.t.Helper()
	all, err := store.Ask(r.t.Context(), filepath.Join(r.dir, "state"), of)
	if err != nil {
		r.t.Error(err)
	}
	return all
}

// request is one of them.
func (r *rig) request(id string) approval.Request {
	r.t.Helper()
	for _, one := range append(r.requests(approval.Done), r.waiting()...) {
		if one.ID == id {
			return one
		}
	}
	r.t.Fatalf("there is no request %q", id)
	return approval.Request{}
}

// files has the run's store get a request that was filed at a time of its own.
func (r *rig) files(ask approval.Request, at time.Time) (asked approval.Request) {
	r.t.Helper()
	err := r.opt.Store.Write(r.t.Context(), func(c *store.Change) (err error) {
		asked, _, err = approval.Ask(c, ask, config.Approvals{}, at)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.s.consent.Look(r.t.Context())
	return asked
}

// answers is who answers a request while no scheduler runs.
func (r *rig) answers(id string, a approval.Answer) (answered approval.Request, err error) {
	err = adopt.Act(r.t.Context(), filepath.Join(r.dir, "state"), func(c *store.Change) (err error) {
		answered, err = consent.Answer(c, id, a, time.Now())
		return err
	})
	return answered, err
}

// asked returns the id of a request that an agent called a has made in a run which has ended.
func (r *rig) asked(did *seen) (id string) {
	r.t.Helper()
	r.set("a", did.asks(r, approval.Request{Question: "Deploy?"}))
	stop := r.run()
	r.say("a", "deploy it")
	r.sleep(time.Minute)
	stop()
	return r.waiting()[0].ID
}

func (r *rig) waiting() []approval.Request {
	r.t.Helper()
	return r.requests(approval.Waiting)
}

// TestTwoHundredFiresBehindOneApproval: they wait, nothing runs and nothing is lost,
// also through a restart of everything; then the answer is the first that the agent
// gets, in the conversation in which it has asked.
func TestTwoHundredFiresBehindOneApproval(t *testing.T) {
	t.Parallel()
	inBubble(t, "a other", func(t *testing.T, r *rig) {
		var did seen
		r.set("a", did.asks(r, approval.Request{Question: "Deploy?", Category: "destroy"}))
		stop := r.run()
		r.say("a", "deploy it")
		r.sleep(time.Minute)
		r.want("a", Held)
		if a := r.state("a"); a.Approval == nil || a.Approval.Question != "Deploy? (destroy)" || !a.GoesOn {
			t.Fatalf("it waits for %+v: %s", a.Approval, a.Reason)
		}
		for i := range 200 {
			if i == 100 { // and then everything is started anew
				stop()
				stop = r.run()
				r.want("a", Held)
			}
			r.say("a", fmt.Sprintf("fire %d", i))
			r.sleep(30 * time.Second)
		}
		if n := len(r.started("a")); n != 1 {
			t.Errorf("%d sessions while it waits", n)
		}
		if _, err := r.s.Resume("a"); err != nil {
			t.Error(err)
		}
		r.send("other", 1)
		r.sleep(time.Minute)
		if len(r.started("a")) != 1 || len(r.started("other")) != 1 {
			t.Errorf("a resume is no answer, and nobody else waits: %v", r.order())
		}
		id := r.waiting()[0].ID
		if _, err := r.s.AnswerApproval(t.Context(), id, approval.ByPerson(approval.Approved, "go")); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * time.Hour)
		did.mu.Lock()
		defer did.mu.Unlock()
		if len(did.prompts) != 202 || did.prompts[0] != "deploy it" || !strings.Contains(did.prompts[1], "It was approved by a person.") || did.prompts[2] != "fire 0" || did.prompts[201] != "fire 199" {
			t.Errorf("%d prompts were worked on: %.5q", len(did.prompts), did.prompts)
		}
		if len(did.resumed) < 2 || did.resumed[0] != "" || did.resumed[1] == "" {
			t.Errorf("the answer came in the conversations %q", did.resumed)
		}
		var states []string
		for _, e := range r.journal(journal.Approval) {
			states = append(states, e.State)
			if e.Approval != id || e.Agent != "a" || e.At.IsZero() {
				t.Errorf("journal: %+v", e)
			}
		}
		if !slices.Equal(states, []string{"asked", "approved"}) {
			t.Errorf("journal: %q", states)
		}
		stop()
	})
}

// TestNobodyAnswers: after seven days it is a no, which the agent is told.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var did seen
		r.set("a", did.asks(r, approval.Request{}))
		stop := r.run()
		r.s.mu.Lock()
		asked := approval.Request{Agent: "a", Key: r.s.fleet.find("a").key, Question: "Deploy?"}
		r.s.mu.Unlock()
		r.files(asked, time.Now().Add(5*time.Minute-approval.Lasts))
		r.sleep(4 * time.Minute)
		r.want("a", Held)
		r.sleep(10 * time.Minute)
		r.want("a", Idle)
		if len(did.prompts) != 1 || !strings.Contains(did.prompts[0], "not answered within 7 days, which is a no") {
			t.Errorf("it was told %q", did.prompts)
		}
		stop()
	})
}

// TestARuleAnswersAtOnce, and the agent does not wait.
func TestARuleAnswersAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var did seen
		r.fleet.Agents[0].Approvals = config.Approvals{Never: []string{"destroy"}, Always: []string{"destroy"}}
		r.set("a", did.asks(r, approval.Request{Question: "Deploy?", Category: "destroy"}))
		stop := r.run()
		r.say("a", "deploy it")
		r.say("a", "more")
		r.sleep(5 * time.Minute)
		r.want("a", Idle)
		if !slices.Equal(did.prompts, []string{"deploy it", "more"}) {
			t.Errorf("it worked on %q", did.prompts)
		}
		if all := r.journal(journal.Approval); len(all) != 1 || all[0].State != "rejected" || !strings.Contains(all[0].Reason.Raw(), "a rule (approvals: never: destroy)") {
			t.Errorf("journal: %+v", all)
		}
		stop()
	})
}

// TestAnAnswerWithoutARun is given by the next one.
func TestAnAnswerWithoutARun(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var did seen
		id := r.asked(&did)
		if _, err := r.answers(id, approval.ByPerson(approval.Rejected, "no tests")); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is told once
			stop := r.run()
			r.sleep(time.Minute)
			r.want("a", Idle)
			stop()
		}
		if len(did.prompts) != 2 || !strings.Contains(did.prompts[1], "It was rejected by a person. Do not do it.\n\nno tests") || did.resumed[1] == "" {
			t.Errorf("it was told %q, in %q", did.prompts, did.resumed)
		}
	})
}

// TestAnAnswerThatMissedTheBeginOfARun: whoever answers finds no scheduler while one has
// looked and does not answer yet. That answer lay for half a minute; now the run alone takes it.
func TestAnAnswerThatMissedTheBeginOfARun(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var did seen
		id := r.asked(&did)
		stop := r.run()
		defer stop()
		if _, err := r.answers(id, approval.ByPerson(approval.Approved, "")); !errors.As(err, new(*store.HeldError)) || !r.request(id).Waits() {
			t.Errorf("beside the run: %v, %+v", err, r.request(id))
		}
		if _, err := r.s.AnswerApproval(t.Context(), id, approval.ByPerson(approval.Approved, "")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.sleep(time.Minute)
		if all := r.started("a"); len(all) != 2 || all[1].Sub(began) > 2*time.Second || len(did.prompts) != 2 {
			t.Errorf("started at %v, it was told %q", all, did.prompts)
		}
	})
}

// TestAnAnswerThatIsOwedIsWork: a run with --once hands it over before it finds nothing to
// do, also where the agent's queue is locked for a moment; one that stays locked keeps
// neither the run from its start nor from its end.
func TestAnAnswerThatIsOwedIsWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		locked time.Duration // 0: not at all
		told   int
	}{"at once": {0, 2}, "locked for a moment": {3 * time.Second, 2}, "locked for good": {24 * time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a other", func(t *testing.T, r *rig) {
				var did seen
				id := r.asked(&did)
				if _, err := r.answers(id, approval.ByPerson(approval.Approved, "")); err != nil {
					t.Fatal(err)
				}
				if c.locked > 0 {
					letGo := r.hang("a")
					defer letGo()
					defer time.AfterFunc(c.locked, letGo).Stop()
				}
				r.opt.Once = true
				began := time.Now()
				<-r.start(t.Context())
				if took := time.Since(began); len(did.prompts) != c.told || took > time.Minute {
					t.Errorf("after %s it was told %q", took, did.prompts)
				}
				if r := r.request(id); r.Owes() != (c.told == 1) {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestACancelledPromptAsksNoMore: what was asked in a turn that a person has cancelled
// is withdrawn.
func TestACancelledPromptAsksNoMore(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		m := r.declare("a")
		stop := r.run()
		key := ""
		r.s.mu.Lock()
		key = r.s.fleet.find("a").key
		r.s.mu.Unlock()
		for _, entry := range []string{"cancelled", "another"} {
			r.files(approval.Request{Agent: m.Name, Key: key, Question: "q", Entry: entry}, time.Now())
		}
		r.sleep(time.Minute)
		r.want("a", Held)
		member := r.s.fleet.members[0]
		r.s.orphans.noteRecovered(member, inbox.CancelledOrphan, &inbox.InFlight{DeliveryID: "cancelled"})
		if all := r.waiting(); len(all) != 1 || all[0].Entry != "another" {
			t.Errorf("waiting: %+v", all)
		}
		r.want("a", Held)
		if a := r.state("a"); a.Approval == nil || a.Approval.More != 0 {
			t.Errorf("it waits for %+v", a.Approval)
		}
		stop()
	})
}
