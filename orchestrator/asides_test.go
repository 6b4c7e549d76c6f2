package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// sideways is an until: whose yes the queue does not wait for.
func sideways(names ...string) *config.Until {
	u := approved(names...)
	u.Aside = true
	return u
}

// specsOf has an agent claim to be done, and returns how its sessions were started.
func (r *rig) specsOf(agent string) func() []session.Spec {
	var mu sync.Mutex
	var all []session.Spec
	r.set(agent, func(f *fakeSession) session.Outcome {
		mu.Lock()
		all = append(all, f.spec)
		mu.Unlock()
		return claims(time.Minute)(f)
	})
	return func() []session.Spec { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

// asidesOf returns what is set aside of an agent's queue.
func (r *rig) asidesOf(agent string) (all []inbox.InFlight) {
	r.t.Helper()
	r.held(agent, func(q *inbox.Held) (err error) {
		all, err = q.Waiting()
		return err
	})
	return all
}

// TestAYesThatIsAwaitedAsideKeepsNobodyWaiting: the queue goes on, a yes finishes its
// entry without a session, and a no hands it over before all else, in the conversation in
// which it was worked on.
func TestAYesThatIsAwaitedAsideKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(sideways("release"), passing)
		specs := r.specsOf("a")
		r.send("a", 3)
		end := r.run()
		defer func() { end() }()
		r.sleep(30 * time.Minute)
		if asked, aside := r.waiting(), r.asidesOf("a"); len(asked) != 3 || len(aside) != 3 || r.state("a").Approval != nil {
			t.Fatalf("asked %+v, aside %+v, held by %+v", asked, aside, r.state("a").Approval)
		}
		sessions := len(specs())
		first, second := r.waiting()[0], r.waiting()[1]
		if _, err := r.s.AnswerApproval(t.Context(), first.ID, approval.ByPerson(approval.Approved, "")); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		if all := r.replies("a"); len(all) != 1 || all[0].DeliveryID != first.Entry || all[0].Verdict == nil || len(specs()) != sessions {
			t.Fatalf("a yes: %+v, %d sessions after %d", all, len(specs()), sessions)
		}
		worked := specs()[1].Session
		r.send("a", 1)
		if _, err := r.s.AnswerApproval(t.Context(), second.ID, approval.ByPerson(approval.Rejected, "not yet")); err != nil {
			t.Fatal(err)
		}
		r.sleep(30 * time.Minute)
		if n := len(specs()); n < sessions+2 {
			t.Fatalf("%d sessions after %d", n, sessions)
		}
		back := specs()[sessions:]
		if i := slices.IndexFunc(back, func(s session.Spec) bool { return s.Resume == worked }); i < 0 || back[i].Policy.Context != hook.ContextEntry {
			t.Errorf("nothing goes on in conversation %s: %+v", worked, specs()[sessions:])
		}
		found := false
		for _, f := range r.asidesOf("a") {
			found = found || f.DeliveryID == second.Entry && f.Iteration == 2 && strings.Contains(f.Output, "not yet")
		}
		if !found || len(r.waiting()) != 3 {
			t.Errorf("%+v waits, %+v is asked", r.asidesOf("a"), r.waiting())
		}
	})
}

// TestWhatWaitsAsideWithoutItsFolder: only the log said that an answer had no effect, and what
// was on record in the state directory was told as lost, and could be cancelled.
func TestWhatWaitsAsideWithoutItsFolder(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(sideways("release"), passing)
		r.set("a", claims(time.Minute))
		r.send("a", 1)
		defer r.run()()
		r.sleep(30 * time.Minute)
		if all, err := r.s.Cancel(t.Context(), "", false, "a"); err != nil || all[0].Outcome != CancelNothing {
			t.Errorf("what waits aside was cancelled as if it were in flight: %+v, %v", all, err)
		}
		home := r.agent("a").Home
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
		r.sleep(30 * time.Second)
		if u := r.state("a").Untended; u != nil {
			t.Errorf("told at once: %+v", u)
		}
		r.says(approval.Approved)
		r.sleep(2 * time.Minute)
		a := r.state("a")
		if a.QueueLost != nil || len(r.journal(journal.QueueLost)) > 0 {
			t.Errorf("lost: %+v", a.QueueLost)
		}
		if u := a.Untended; u == nil || !strings.Contains(u.Why.String(), home) || time.Since(u.Since) < 2*time.Minute {
			t.Errorf("not told: %+v", u)
		}
		if err := claim.MakeHome(r.agent("a")); err != nil { // as apply does
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		if a := r.state("a"); a.Untended != nil || a.Acknowledged != 1 {
			t.Errorf("with its folder again: %+v, %d done", a.Untended, a.Acknowledged)
		}
	})
}

// TestADamagedRecordOfWhatWaitsAside: its prompt is handed over again and asked about again,
// because nobody knows any more who has agreed to what, and a yes to another one counts.
func TestADamagedRecordOfWhatWaitsAside(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"cut":      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.proves(sideways("release"), passing)
				r.set("a", claims(time.Minute))
				r.send("a", 2)
				end := r.run()
				defer func() { end() }()
				r.sleep(30 * time.Minute)
				asked := r.waiting()
				if len(asked) != 2 {
					t.Fatalf("%+v", asked)
				}
				records, err := filepath.Glob(filepath.Join(r.dir, "state", "asides", "*", asked[0].Entry+".json"))
				if err != nil || len(records) != 1 {
					t.Fatalf("%q, %v", records, err)
				}
				if err := damage(records[0]); err != nil {
					t.Fatal(err)
				}
				r.says(approval.Approved)
				r.sleep(30 * time.Minute)
				again := r.waiting()
				if all := r.replies("a"); len(all) != 1 || all[0].DeliveryID != asked[1].Entry || len(again) != 1 || again[0].Entry != asked[0].Entry {
					t.Fatalf("done %+v, asked again %+v", all, again)
				}
				r.says(approval.Approved)
				r.sleep(30 * time.Minute)
				if all := r.replies("a"); len(all) != 2 || len(r.asidesOf("a")) != 0 {
					t.Errorf("done %+v, aside %+v", all, r.asidesOf("a"))
				}
			})
		})
	}
}

// TestWhatWaitsAsideOutlivesTheScheduler, and what its agent does to its file.
func TestWhatWaitsAsideOutlivesTheScheduler(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(sideways("release"), passing)
		r.set("a", claims(time.Minute))
		r.send("a", 2)
		end := r.run()
		r.sleep(30 * time.Minute)
		asked := r.waiting()
		if len(asked) != 2 {
			t.Fatalf("%+v", asked)
		}
		end()
		if _, err := r.answers(asked[0].ID, approval.ByPerson(approval.Approved, "")); err != nil {
			t.Fatal(err)
		}
		r.held("a", func(q *inbox.Held) error { // as the agent can
			_, err := q.KeepWaiting(nil, func(string) bool { return true })
			return err
		})
		end = r.run()
		defer func() { end() }()
		r.sleep(5 * time.Minute)
		if all, aside := r.replies("a"), r.asidesOf("a"); len(all) != 1 || all[0].DeliveryID != asked[0].Entry || len(aside) != 1 || aside[0].DeliveryID != asked[1].Entry {
			t.Errorf("done %+v, aside %+v", all, aside)
		}
	})
}
