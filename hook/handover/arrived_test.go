package handover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/client/clienttest"
	"heartbeat/queue"
)

// TestATranscriptTellsThatAToolWasCalled where no hook has: an entry whose tool
// had run was given again under deadletter, when the hooks went in the middle of
// its turn.
func TestATranscriptTellsThatAToolWasCalled(t *testing.T) {
	t.Parallel()
	const (
		tool      = `{"type":"assistant","isSidechain":false,"message":{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}` + "\n"
		subagents = `{"type":"assistant","isSidechain":true,"message":{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{}}]}}` + "\n"
		says      = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I write \"tool_use\""}]}}` + "\n"
	)
	var (
		handed  = clienttest.UserLine(clienttest.Feedback + "[x hook]: do it")
		kickoff = clienttest.UserLine(KickoffPrompt("do it"))
		stopped = `{"type":"system","subtype":"stop_hook_summary","preventedContinuation":true}` + "\n"
		quoted  = clienttest.UserLine(`{"type":"assistant","message":{"content":[{"type":"tool_use"}]}}`)
	)
	for name, tt := range map[string]struct {
		lines string
		state queue.State
		via   queue.Via
		want  queue.Arrival
	}{
		"handed over, a tool":                {handed + says + tool, queue.Offered, queue.ViaStop, queue.Worked},
		"handed over, none":                  {handed + says, queue.Offered, queue.ViaStop, queue.Seen},
		"handed over, a subagent's":          {handed + subagents, queue.Offered, queue.ViaStop, queue.Seen},
		"handed over, one in a text":         {handed + quoted + says, queue.Offered, queue.ViaStop, queue.Seen},
		"the one before used a tool":         {tool + handed + says, queue.Taken, queue.ViaStop, queue.Seen},
		"handed over, and stopped there":     {handed + stopped, queue.Offered, queue.ViaStop, queue.Unseen},
		"stopped there, and then answered":   {handed + stopped + says, queue.Offered, queue.ViaStop, queue.Seen},
		"stopped there, and then worked":     {handed + stopped + tool, queue.Offered, queue.ViaStop, queue.Worked},
		"the one before stopped there":       {stopped + handed + says, queue.Offered, queue.ViaStop, queue.Seen},
		"a tool, and no hand-over":           {tool, queue.Offered, queue.ViaStop, queue.Unseen},
		"taken, a tool, and no hand-over":    {tool, queue.Taken, queue.ViaStop, queue.Worked},
		"begun with, a tool":                 {kickoff + tool, queue.Offered, queue.ViaKickoff, queue.Worked},
		"begun with and taken, a tool":       {kickoff + tool, queue.Taken, queue.ViaKickoff, queue.Worked},
		"begun with, none":                   {kickoff + says, queue.Taken, queue.ViaKickoff, queue.Seen},
		"begun with, the tool is cut off":    {kickoff + strings.TrimSuffix(tool, "\n"), queue.Taken, queue.ViaKickoff, queue.Seen},
		"begun with, and nothing is written": {"", queue.Offered, queue.ViaKickoff, queue.Unseen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "projects", "-work", "S.jsonl")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			clienttest.Append(t, path, tt.lines)
			g := given("do it", tt.via)
			g.State, g.Handover.Session = tt.state, "S"
			if tt.via == queue.ViaStop {
				g.Handover.Transcript = path
			}
			if got := ArrivedIn(dir)(g); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if g.Handover.Session = "another"; tt.via == queue.ViaKickoff && ArrivedIn(dir)(g) != queue.Unknown {
				t.Error("something is known of a session without a transcript")
			}
		})
	}
}
