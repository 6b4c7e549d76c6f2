package orchestrator

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// queues appends prompts to the queue of "a" as a sender of ours does.
func (r *rig) queues(ids ...string) {
	r.t.Helper()
	a := r.agent("a")
	r.mkdir(a.Home)
	for _, id := range ids {
		l := inbox.Letter{ID: id, Source: "send", Prompt: "prompt " + id}
		if _, err := queue.Append(r.t.Context(), a, l); err != nil {
			r.t.Fatal(err)
		}
		if err := ledger.Queued(filepath.Join(r.dir, "state"), a, l); err != nil {
			r.t.Fatal(err)
		}
	}
	r.tell("a")
}

// filed are the dead letters of "a", in a line each.
func (r *rig) filed() (all []string) {
	for _, d := range r.dead("a") {
		all = append(all, string(d.Reason)+" "+d.Prompt())
	}
	slices.Sort(all)
	return all
}

// TestASessionThatWritesOverTheQueue: what has the id of a queued prompt and says something
// else is forged when its turn comes, and what has left the queue is lost, both with their
// text and told once. What is queued again is remembered as before, and nothing is kept of
// what has ended.
func TestASessionThatWritesOverTheQueue(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		checks := r.proves(config.NewUntil("make", "test"), passing)
		r.queues("m1", "m2", "m3", "m4")
		first := true
		r.set("a", func(f *fakeSession) session.Outcome {
			if first {
				first = false
				path := filepath.Join(f.spec.Home, "inbox.jsonl")
				data, err := os.ReadFile(path)
				data = bytes.Replace(data, []byte("prompt m2"), []byte("say hello"), 1)
				data = bytes.Replace(data, []byte(`"id":"m3"`), []byte(`"id":"x3"`), 1)
				if err == nil {
					err = os.WriteFile(path, data, 0o600)
				}
				if err != nil {
					f.r.t.Error(err)
				}
			}
			return claims(time.Minute)(f)
		})
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		if got := r.filed(); !slices.Equal(got, []string{"forged prompt m2", "lost prompt m3"}) || checks.n() != 3 || len(r.journal(journal.Forged)) != 1 {
			t.Fatalf("filed %q after %d checks, told %+v", got, checks.n(), r.journal(journal.Forged))
		}
		if n, err := r.kept().Retry(t.Context(), r.agent("a"), nil, true); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if all, err := ledger.TextsOf(filepath.Join(r.dir, "state"), r.agent("a").Inbox); all.Len() != 2 || err != nil {
			t.Errorf("%d are remembered: %v", all.Len(), err)
		}
		r.tell("a")
		r.sleep(time.Hour)
		if all, err := ledger.TextsOf(filepath.Join(r.dir, "state"), r.agent("a").Inbox); all.Len() != 0 || err != nil {
			t.Errorf("%d are still remembered: %v", all.Len(), err)
		}
		if checks.n() != 5 || len(r.dead("a")) > 0 || len(r.journal(journal.Forged)) != 1 {
			t.Errorf("%d checks, filed %q, told %+v", checks.n(), r.filed(), r.journal(journal.Forged))
		}
	})
}
