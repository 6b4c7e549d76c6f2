package orchestrator

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
)

// TestWhatIsDroppedAsideIsNotPutBack: an entry that is set aside is dropped while nothing
// runs, and its dead letter is queued again or deleted before the next run, which finds no
// trace of its end. The drop may have been killed before the state directory forgot it.
func TestWhatIsDroppedAsideIsNotPutBack(t *testing.T) {
	t.Parallel()
	again := func(ctx context.Context, r *rig) (int, error) { return r.kept().Retry(ctx, r.agent("a"), nil, true) }
	purged := func(ctx context.Context, r *rig) (int, error) { return queue.Purge(ctx, r.agent("a"), nil, true) }
	for name, c := range map[string]struct {
		killed bool
		then   func(context.Context, *rig) (int, error)
		asked  int
	}{
		"queued again":         {false, again, 2},
		"queued again, killed": {true, again, 2},
		"deleted, killed":      {true, purged, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.proves(sideways("release"), passing)
				r.set("a", claims(time.Minute))
				r.send("a", 2)
				end := r.run()
				r.sleep(30 * time.Minute) // nobody withdraws what is asked meanwhile
				first := r.waiting()[0]
				end()
				r.dropAside(first.Entry, c.killed)
				if n, err := c.then(t.Context(), r); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				end = r.run()
				defer func() { end() }()
				r.sleep(30 * time.Minute)
				asked := r.waiting()
				if len(asked) != c.asked || len(r.asidesOf("a")) != c.asked || len(r.journal(journal.Forged)) > 0 {
					t.Errorf("asked %+v, aside %+v, %+v", asked, r.asidesOf("a"), r.journal(journal.Forged))
				}
				for _, one := range asked {
					if one.Entry == first.Entry {
						t.Errorf("it waits again: %+v", one)
					}
				}
				r.says(approval.Approved)
				r.sleep(time.Minute)
				if all := r.replies("a"); len(all) != c.asked || len(r.asidesOf("a")) > 0 {
					t.Errorf("%d are done, %+v waits", len(all), r.asidesOf("a"))
				}
			})
		})
	}
}

// dropAside drops an entry of "a" that is set aside as a person does who is then interrupted, or not,
// and has what becomes of its dead letter prepared.
func (r *rig) dropAside(delivery string, killed bool) {
	r.t.Helper()
	a := r.agent("a")
	if n, err := queue.Drop(r.t.Context(), a, []string{delivery}); n != 1 || err != nil {
		r.t.Fatal(n, err)
	}
	for range map[bool]int{false: 2, true: 1}[killed] {
		if err := r.kept().Ended(r.t.Context(), a); err != nil {
			r.t.Fatal(err)
		}
	}
}

// kept is what a command knows of the queue of "a" while nothing runs.
func (r *rig) kept() Kept {
	r.t.Helper()
	kept, err := KeptOf(r.fleet, filepath.Join(r.dir, "state"), r.agent("a"))
	if err != nil {
		r.t.Fatal(err)
	}
	return kept
}

// TestAFullConversationApartIsNotTheQueuesOwn: what goes on in the conversation in which
// it was worked on may fill that one; the queue goes on with its own.
func TestAFullConversationApartIsNotTheQueuesOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(sideways("release"), passing)
		a := r.agent("a")
		a.Context, a.MaxContext = hook.ContextEntry, 70
		specs := r.specsOf("a")
		r.send("a", 2)
		end := r.run()
		defer func() { end() }()
		r.sleep(30 * time.Minute)
		asked, was := r.waiting(), len(specs())
		if len(asked) != 2 {
			t.Fatalf("%+v", asked)
		}
		own := r.conversation()
		r.set("a", claimsWith(time.Minute, func(f *fakeSession, _ *inbox.InFlight) {
			f.reports <- session.Report{
				At: time.Now(), Phase: hook.Turn,
				Told: &client.StatusLine{SessionID: f.spec.Session, Context: client.ContextWindow{Size: 1000, Used: 90}},
			}
			time.Sleep(time.Second)
		}))
		if _, err := r.s.AnswerApproval(t.Context(), asked[0].ID, approval.ByPerson(approval.Rejected, "no")); err != nil {
			t.Fatal(err)
		}
		r.sleep(10 * time.Minute)
		if forgot := r.journal(journal.Forgot); len(forgot) != 1 {
			t.Errorf("%+v", forgot)
		}
		if now := r.conversation(); own == "" || now != own {
			t.Errorf("the queue goes on in %q, not in %q (%d sessions)", now, own, was)
		}
	})
}

// TestAnAgentThatComesBackIsAskedAboutAgain: its requests were withdrawn while it was
// removed, which is no answer.
func TestAnAgentThatComesBackIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, "b a", func(t *testing.T, r *rig) {
		r.proves(sideways("release"), passing)
		r.set("a", claims(time.Minute))
		r.send("a", 1)
		end := r.run()
		defer func() { end() }()
		r.sleep(10 * time.Minute)
		if len(r.waiting()) != 1 {
			t.Fatalf("%+v", r.waiting())
		}
		with, without := *r.fleet, *r.fleet
		without.Agents = nil
		for _, a := range r.fleet.Agents {
			if a.Name != "a" {
				without.Agents = append(without.Agents, a)
			}
		}
		if _, err := r.s.Reload(&without); err != nil {
			t.Fatal(err)
		}
		r.sleep(10 * time.Minute)
		if len(r.waiting()) > 0 {
			t.Fatalf("%+v", r.waiting())
		}
		if _, err := r.s.Reload(&with); err != nil {
			t.Fatal(err)
		}
		r.sleep(10 * time.Minute)
		if aside := r.asidesOf("a"); len(r.waiting()) != 1 || len(aside) != 1 || aside[0].Returns() {
			t.Fatalf("%+v is asked, %+v is aside", r.waiting(), aside)
		}
		r.says(approval.Approved)
		r.sleep(time.Minute)
		if len(r.replies("a")) != 1 {
			t.Errorf("%+v", r.replies("a"))
		}
	})
}

// conversation is the one of the queue of "a".
func (r *rig) conversation() string {
	r.t.Helper()
	id, err := store.Ask(r.t.Context(), filepath.Join(r.dir, "state"), func(v *store.View) (id string, err error) {
		_, err = v.One(`SELECT id FROM conversations WHERE agent = 'a'`, nil, &id)
		return id, err
	})
	if err != nil || id == "" {
		r.t.Fatal(id, err)
	}
	return id
}
