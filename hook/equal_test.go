package hook

import (
	"testing"
	"time"

	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

// Of two equal entries in a row, the record of the first can be written after
// the second was offered. It proved the second, which had not arrived.
func TestTheRecordOfAnEqualEntryBeforeProvesNothing(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]func(l *lab, first string){
		"written while it is waited for": func(l *lab, first string) {
			timer := time.AfterFunc(200*time.Millisecond, func() { clienttest.Append(l.t, l.transcript, first) })
			l.t.Cleanup(func() { timer.Stop() })
			l.handsOver("same", fields{"stop_hook_active": true})
		},
		"written much later": func(l *lab, first string) {
			l.handsOver("same", fields{"stop_hook_active": true})
			clienttest.Append(l.t, l.transcript, first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "same", "same"})
			clienttest.Append(t, l.transcript, clienttest.UserLine("something else"))
			l.handsOver("same", nil)
			written(l, clienttest.UserLine(clienttest.Feedback+"[x hook]: same"))
			if f := l.flight(); f == nil || f.Attempt != 1 || handover.Arrived(&f.Given) == queue.Seen {
				t.Fatalf("in flight %+v, %v", f, handover.Arrived(&f.Given))
			}
			l.handsOver("same\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted. Check what is already done before acting.]",
				fields{"prompt_id": "P2"})
			if n := len(l.replies()); n != 2 {
				t.Errorf("%d replies", n)
			}
		})
	}
}
