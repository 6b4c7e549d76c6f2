package hook

import (
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
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
			l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(flight.Prompt())})
			l.quietly(client.PreToolUse, fields{"tool_name": "Bash"})
			l.quietly(client.Stop, fields{"last_assistant_message": "did one"})
			if r := l.record(); r.Phase != Settling || r.Settles != flight.DeliveryID || len(l.replies()) != 0 {
				t.Fatalf("%+v, %q", r, l.replies())
			}
			said := ""
			if !over {
				said = `"[make test]: fails"`
			}
			r := l.record()
			path := clienttest.Transcript(t, `{"type":"user","promptId":"`+r.PromptID+`"}`, clienttest.StopLine(`{"command":"make test"}`, said))
			l.change(func(r *Record) { r.Transcript = path })
			l.locked(func(q *inbox.Held) {
				_, _, err := inbox.Orphaned{Held: q}.Recover(inbox.Interruption{
					Policy: inbox.DeadLetter, Counts: true, Now: time.Now(),
					Finished: func(f inbox.InFlight) *inbox.Acknowledgement {
						said := Finished(l.home, f.Session, f.DeliveryID, time.Now())
						if said == nil {
							return nil
						}
						return &inbox.Acknowledgement{Session: said.Session, Reply: said.Text, Abandoned: said.Abandoned, Now: said.At}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
			})
			if got := l.replies(); over != (len(got) == 1 && got[0] == "did one") || l.flight() != nil {
				t.Errorf("replies %q, in flight %+v", got, l.flight())
			}
		})
	}
}
