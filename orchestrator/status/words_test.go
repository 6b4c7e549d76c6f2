package status

import (
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// TestNotesOfATurn: what takes a while in a turn is said, and what the session says of
// itself is shown as its words, on one line, and never beyond its turn.
func TestNotesOfATurn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const silent = "no sign of life for 1m0s: the client waits for the service, or repeats its request"
	for name, tt := range map[string]struct {
		state AgentState
		want  string
	}{
		"nothing": {AgentState{Phase: hook.Turn}, ""},
		"silence": {AgentState{Phase: hook.Turn, Silent: ago(time.Minute)}, silent},
		"a tool":  {AgentState{Phase: hook.Turn, Tool: &session.Tool{Name: "Bash", Since: ago(time.Minute)}}, "the tool Bash has run for 1m0s"},
		"words":   {AgentState{Phase: hook.Turn, Said: &Said{ago(5 * time.Second), "half\x1b[31m\nof it"}}, `it said 5s ago: "half�[31m of it"`},
		"no word": {AgentState{Phase: hook.Background, Said: &Said{At: ago(5 * time.Second)}}, "it said 5s ago that it lives"},
		"both": {
			AgentState{Phase: hook.Turn, Tool: &session.Tool{Name: "Bash", Since: ago(time.Minute)}, Said: &Said{ago(5 * time.Second), "half"}},
			`the tool Bash has run for 1m0s; it said 5s ago: "half"`,
		},
		"too late": {AgentState{Phase: hook.Waiting, Said: &Said{ago(5 * time.Second), "half"}}, ""},
	} {
		tt.state.State = Running
		if got := (Agent{AgentState: tt.state}).Note(now); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
