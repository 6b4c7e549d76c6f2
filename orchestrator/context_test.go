package orchestrator

import (
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// TestAFullConversationIsNotResumed: a session whose context is fuller than max-context
// ends after its entry, and the next one begins a new conversation, which is the one
// that is resumed from then on. No entry is interrupted, and none fails.
func TestAFullConversationIsNotResumed(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		a := r.agent("a")
		a.Context, a.MaxContext, a.MaxRestarts = hook.ContextResume, 70, 0
		var resumed []string
		used := 0.0 // of the conversation
		r.set("a", func(f *fakeSession) session.Outcome {
			if resumed = append(resumed, f.spec.Resume); f.spec.Resume == "" {
				used = 0
			}
			time.Sleep(boot)
			for {
				if o := f.told(); o.Finish != "" {
					return finished(o)
				}
				if !f.take(entry) {
					return session.Outcome{Why: hook.EndDrained, Bound: true}
				}
				used += 20
				f.reports <- session.Report{
					At: time.Now(), Phase: hook.Turn, Acknowledged: f.acknowledged,
					Told: &client.StatusLine{SessionID: f.spec.Session, Context: client.ContextWindow{Size: 1000, Used: used}},
				}
				time.Sleep(time.Second)
			}
		})
		r.send("a", 6) // four fill it
		stop := r.run()
		defer stop()
		r.sleep(10 * time.Minute)
		r.send("a", 1)
		r.sleep(10 * time.Minute)
		if s := r.state("a"); s.Acknowledged != 7 || s.State != Idle || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
		if len(resumed) != 3 || resumed[0] != "" || resumed[1] != "" || resumed[2] == "" {
			t.Errorf("sessions went on with %q; the second one has a new conversation, which the third goes on with", resumed)
		}
		if forgot := r.journal(journal.Forgot); len(forgot) != 1 {
			t.Errorf("journal: %+v", forgot)
		}
	})
}
