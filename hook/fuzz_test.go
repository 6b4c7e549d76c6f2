package hook

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/queue"
)

// Whatever the payload and the session's record say, a decision about an
// entry that was only offered does not acknowledge it without proof.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{"hook_event_name":"Stop","session_id":"S"}`), []byte(`{"version":1}`))
	f.Add([]byte(`{"hook_event_name":"PreToolUse","agent_id":"x"}`), []byte(`{"version":1,"policy":{"background":"wait"},"phase":"turn"}`))
	f.Add([]byte(`{"hook_event_name":"SessionEnd","reason":"clear"}`), []byte(`{"ruling":{"final":true}}`))
	f.Fuzz(func(t *testing.T, data, record []byte) {
		p, err := client.Claude.Hooks.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var r Record
		if json.Unmarshal(record, &r) != nil {
			return
		}
		now := time.Now()
		d := decide(&r, facts{now: now, event: p, flight: flightIn(queue.Offered, func(g *queue.Given) {
			g.Handover.PromptID = "a prompt that no payload has guessed"
		})})
		if d.acknowledge != nil || d.advance != "" && d.advance != queue.Offered {
			t.Fatalf("payload %q, record %q: %+v", data, record, d)
		}
	})
}
