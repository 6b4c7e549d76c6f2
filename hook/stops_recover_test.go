package hook

import (
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

// TestAKillBeforeTheAcknowledgement, while the session settles: the entry is
// done where the transcript shows that no hook had the client go on.
func TestAKillBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]bool{"the client had stopped": true, "it goes on": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(r *Record) {
				r.Policy.Mode, r.Policy.ForeignStopHooks, r.Policy.Foreign = Drain, true, ForeignLearn
			})
			l.append("one")
			flight := l.offerFirst()
			l.quietly(client.SessionStart, fields{"source": "startup"})
			l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(flight.Prompt)})
			l.quietly(client.PreToolUse, fields{"tool_name": "Bash"})
			l.quietly(client.Stop, fields{"last_assistant_message": "did one"})
			if r := l.record(); r.Phase != Settling || r.Settles != flight.Delivery || len(l.replies()) != 0 {
				t.Fatalf("%+v, %q", r, l.replies())
			}
			said := ""
			if !over {
				said = `"[make test]: fails"`
			}
			r := l.record()
			path := clienttest.Transcript(t, `{"type":"user","promptId":"`+r.PromptID+`"}`, clienttest.StopLine(`{"command":"make test"}`, said))
			l.change(func(r *Record) { r.Transcript = path })
			finished := Finished(l.home, "S", flight.Delivery, time.Now())
			if over != (finished != nil && finished.Text == "did one") {
				t.Errorf("it has said %+v", finished)
			}
			outcome, _ := l.recovers(queue.Interruption{Policy: queue.DeadLetterOrphan, Counts: true, Finished: finished != nil})
			if want := map[bool]queue.Outcome{true: queue.StaleOrphanDeleted, false: queue.DeadLettered}[over]; outcome != want || l.flight() != nil {
				t.Errorf("recovered: %s, in flight %+v", outcome, l.flight())
			}
		})
	}
}
