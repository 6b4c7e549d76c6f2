package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"heartbeat/internal/fakeapi"
)

// TestAFullConversationMakesWay: with max-context a session whose conversation is
// fuller ends between two entries, and the next one begins a new conversation, which
// later sessions go on with. It costs no turn.
func TestAFullConversationMakesWay(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"context: resume", "max-context: 20%"},
			fakeapi.Rule{Answer: fakeapi.Answer{Text: "ok", Delay: 6 * time.Second, Usage: fakeapi.Usage{Input: 300_000, Output: 5}}})
		if !c.real {
			f.WriteJSON(filepath.Join(f.Dir, "script.json"), map[string]any{
				"think": "6s", "context-window": 50, "rules": []any{map[string]any{"steps": []any{map[string]any{"reply": "ok"}}}},
			})
		}
		for range 3 {
			f.send("one more")
		}
		f.must("", "run", "--once")
		f.send("and another one")
		f.must("", "run", "--once")
		if n := len(f.outbox()); n != 4 || f.requests() != 4 {
			t.Errorf("%d entries done in %d requests", n, f.requests())
		}
		conversations, err := filepath.Glob(filepath.Join(f.Home, ".claude", "projects", "*", "*.jsonl"))
		if err != nil || len(conversations) < 2 || len(conversations) > 4 {
			t.Errorf("conversations: %q, %v", conversations, err)
		}
		if ends := f.ends(); len(ends) < 3 {
			t.Errorf("sessions ended as %q", ends)
		}
	})
}
