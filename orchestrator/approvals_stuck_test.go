package orchestrator

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestAFolderThatHangsDelaysNoOtherAnswer: somebody holds the lock of one agent's queue,
// and the other agents get their answers at once.
func TestAFolderThatHangsDelaysNoOtherAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		var did seen
		for _, name := range []string{"a", "b"} {
			r.set(name, did.asks(r, approval.Request{Question: "Deploy?"}))
		}
		stop := r.run()
		defer stop()
		r.say("a", "deploy it")
		r.say("b", "deploy it")
		r.sleep(time.Minute)
		lock := r.hang("a")
		r.says(approval.Approved)
		r.sleep(time.Second)
		if a, b := r.state("a"), r.state("b"); a.Approval == nil || b.Approval != nil {
			t.Errorf("a waits for %+v, b for %+v", a.Approval, b.Approval)
		}
		lock()
		r.sleep(2 * time.Minute)
		if a := r.state("a"); a.Approval != nil || len(did.prompts) != 4 {
			t.Errorf("then a waits for %+v; prompts: %q", a.Approval, did.prompts)
		}
	})
}

// TestAnAnswerToWhatWasGivenUp is not handed over, and the journal says so: everything was
// killed in the turn in which it was asked, and answered before the next run gave the
// prompt up.
func TestAnAnswerToWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	for policy, why := range map[inbox.OrphanPolicy]string{
		inbox.DeadLetter: "its prompt was given up (dead-lettered)", inbox.Drop: "its prompt was given up (dropped)", inbox.Retry: "",
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				var did seen
				r.agent("a").OnOrphan = policy
				r.set("a", did.asks(r, approval.Request{}))
				r.run()()
				r.s.mu.Lock()
				asked := approval.Request{Agent: "a", Key: r.s.fleet.find("a").key, Question: "Deploy?"}
				r.s.mu.Unlock()
				r.say("a", "the prompt")
				r.held("a", func(q *inbox.Held) error {
					e, err := q.Next()
					if err == nil {
						asked.Entry = e.DeliveryID
						_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: "killed"})
					}
					if err == nil {
						_, err = q.Advance(inbox.Started, "")
					}
					return err
				})
				storetest.Write(t, filepath.Join(r.dir, "state"), func(c *store.Change) (err error) {
					asked, _, err = approval.Ask(c, asked, config.Approvals{}, time.Now())
					return err
				})
				if _, err := r.answers(asked.ID, approval.ByPerson(approval.Approved, "go")); err != nil {
					t.Fatal(err)
				}
				stop := r.run()
				r.sleep(5 * time.Minute)
				stop()
				told := strings.Contains(strings.Join(did.prompts, "\n"), "You have asked for an approval")
				last := r.journal(journal.Approval)
				if e := last[len(last)-1]; told != (why == "") || why != "" && (e.State != "withdrawn" || e.Reason.Raw() != "approved by a person: go; the agent is not told: "+why) {
					t.Errorf("it was told %q; journal: %+v", did.prompts, e)
				}
				if now := r.request(asked.ID); !now.Yes() || now.Owes() {
					t.Errorf("%+v", now)
				}
			})
		})
	}
}

// TestKilledBetweenAnAnswerAndItsHandOver: the answer that counted is told once, wherever
// the kill came: before it was queued, before that was noted, or after.
func TestKilledBetweenAnAnswerAndItsHandOver(t *testing.T) {
	t.Parallel()
	for _, queued := range []bool{false, true} {
		t.Run(map[bool]string{false: "not queued", true: "queued, and not noted"}[queued], func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				var did seen
				id := r.asked(&did)
				answer, err := r.answers(id, approval.ByPerson(approval.Rejected, "no"))
				if err == nil && queued {
					_, err = queue.Append(t.Context(), r.declare("a"), inbox.Letter{ID: consent.AnswerPrefix + id, Source: "approval", Prompt: answer.HandOver(), Urgent: true})
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.answers(id, approval.ByPerson(approval.Approved, "")); !errors.Is(err, approval.ErrAnswered) {
					t.Errorf("answered again: %v", err)
				}
				for range 2 {
					stop := r.run()
					r.sleep(time.Minute)
					if _, err := r.s.AnswerApproval(t.Context(), id, approval.ByPerson(approval.Approved, "")); !errors.Is(err, approval.ErrAnswered) {
						t.Errorf("answered again: %v", err)
					}
					stop()
				}
				if len(did.prompts) != 2 || !strings.Contains(did.prompts[1], "It was rejected by a person.") {
					t.Errorf("it was told %q", did.prompts)
				}
			})
		})
	}
}

// TestADirectoryThatNeverAnswers: what is stuck in it for good does not keep the run from
// its end.
func TestADirectoryThatNeverAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		stuck := make(chan struct{})
		defer close(stuck)
		began := time.Now()
		stop := r.run()
		r.s.wg.Go(func() { <-stuck })
		stop()
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it ends after %s", took)
		}
	})
}

// hang holds the lock of an agent's queue until it is let go.
func (r *rig) hang(agent string) (letGo func()) {
	r.t.Helper()
	unlock, err := flock.TryLock(r.agent(agent).Inbox)
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if err := unlock(); err != nil {
			r.t.Error(err)
		}
	}
}

// TestARenamedAgentsRequestsHaveItsName: an agent's requests get its new name, whether it is
// renamed during a run or between two, and go on waiting.
func TestARenamedAgentsRequestsHaveItsName(t *testing.T) {
	t.Parallel()
	inBubble(t, "old", func(t *testing.T, r *rig) {
		var s seen
		r.set("", s.asks(r, approval.Request{Question: "Deploy?"}))
		r.say("old", "deploy it")
		stop := r.run()
		r.sleep(time.Minute)
		if got := r.waiting(); len(got) != 1 || got[0].Agent != "old" {
			t.Fatalf("%+v", got)
		}
		renamed := r.declare("old")
		renamed.Name = "new"
		if _, err := r.s.Reload(r.with(renamed)); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * time.Minute)
		if got := r.waiting(); len(got) != 1 || got[0].Agent != "new" {
			t.Errorf("%+v", got)
		}
		stop()
		again := *renamed
		again.Name = "newest"
		if err := consent.Settle(t.Context(), r.with(&again), filepath.Join(r.dir, "state"), nil); err != nil {
			t.Fatal(err)
		}
		if got := r.waiting(); len(got) != 1 {
			t.Errorf("without a run: %+v", got)
		}
	})
}
