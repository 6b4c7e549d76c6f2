package orchestrator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/queue"
)

// later keeps a prompt for an agent until a time.
func (r *rig) later(agent string, p later.Prompt) {
	r.t.Helper()
	a := r.agent(agent)
	r.mkdir(a.Dir)
	if _, err := later.Put(r.t.Context(), a, p); err != nil {
		r.t.Fatal(err)
	}
}

// append queues a prompt as a trigger or an agent's shell may, with an id of its choice.
func (r *rig) append(agent string, l inbox.Letter) {
	r.t.Helper()
	a := r.agent(agent)
	r.mkdir(a.Home)
	if _, err := queue.Append(r.t.Context(), a, l); err != nil {
		r.t.Fatal(err)
	}
	r.tell(agent)
}

// TestATimedPromptWhoseIDIsTakenIsADeadLetter: it vanished without a word at its time. One
// that was queued before, by a run that was killed then, is not sent twice, nor filed.
func TestATimedPromptWhoseIDIsTakenIsADeadLetter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		taken inbox.Letter
		// done is true if that was done long before the time.
		done bool
		dead int
	}{
		"another text":              {inbox.Letter{ID: "x", Source: "echo", Prompt: "another text"}, false, 1},
		"another text that is done": {inbox.Letter{ID: "x", Source: "echo", Prompt: "another text"}, true, 1},
		"the prompt itself":         {inbox.Letter{ID: "x", Source: "send", Prompt: "the later text\n"}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				due := time.Now().Round(0).Add(time.Hour)
				r.later("a", later.Prompt{ID: "x", At: due, Text: "the later text", Urgent: true})
				stop := r.run()
				if !tt.done {
					r.sleep(59*time.Minute + 50*time.Second)
				}
				r.append("a", tt.taken)
				r.sleep(2 * time.Hour)
				dead := r.dead("a")
				if len(dead) != tt.dead {
					t.Fatalf("dead letters: %+v", dead)
				}
				if got := r.state("a").Acknowledged; got != 1 {
					t.Errorf("%d prompts are done", got)
				}
				if all, err := later.List(r.agent("a")); len(all) != 0 || err != nil {
					t.Errorf("%+v still waits, %v", all, err)
				}
				said := r.journal(journal.Skipped)
				if len(said) != tt.dead {
					t.Errorf("the journal says %+v", said)
				}
				if tt.dead > 0 {
					d := dead[0]
					if d.ID != "x" || d.Reason != inbox.IDTaken || !d.Retryable() || d.Cause == "" || said[0].Trigger != "send@x" {
						t.Errorf("%+v, %+v", d, said)
					}
					if _, _, err := queue.Retry(t.Context(), r.agent("a"), []string{"x"}, false); err != nil {
						t.Fatal(err)
					}
					r.tell("a")
					r.sleep(time.Hour)
					if got := r.state("a").Acknowledged; got != 2 {
						t.Errorf("queued again it is not done: %d are", got)
					}
				}
				stop()
			})
		})
	}
}

// TestWhyADuePromptIsNotSentIsShownUntilItIs.
func TestWhyADuePromptIsNotSentIsShownUntilItIs(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").MaxQueue = 1
		r.send("a", 1)
		due := time.Now().Round(0).Add(time.Second)
		r.later("a", later.Prompt{ID: "x", At: due, Text: "later"})
		r.unstartable = errors.New("no client")
		stop := r.run()
		r.sleep(10 * time.Second)
		if u := r.state("a").Unsent; u == nil || u.Since.Sub(due) > time.Second || !strings.Contains(u.Why.Raw(), "the queue is full: 1 of 1") {
			t.Errorf("%+v", u)
		}
		r.mu.Lock()
		r.unstartable = nil
		r.mu.Unlock()
		r.sleep(time.Hour)
		if s := r.state("a"); s.Unsent != nil || s.Acknowledged != 2 {
			t.Errorf("%+v", s)
		}
		stop()
	})
}
