package handover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook/client/clienttest"
	"heartbeat/hook/inbox"
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
		state inbox.State
		via   inbox.Via
		want  inbox.Arrival
	}{
		"handed over, a tool":                {handed + says + tool, inbox.Offered, inbox.ViaStop, inbox.Worked},
		"handed over, none":                  {handed + says, inbox.Offered, inbox.ViaStop, inbox.Seen},
		"handed over, a subagent's":          {handed + subagents, inbox.Offered, inbox.ViaStop, inbox.Seen},
		"handed over, one in a text":         {handed + quoted + says, inbox.Offered, inbox.ViaStop, inbox.Seen},
		"the one before used a tool":         {tool + handed + says, inbox.Taken, inbox.ViaStop, inbox.Seen},
		"handed over, and stopped there":     {handed + stopped, inbox.Offered, inbox.ViaStop, inbox.Unseen},
		"stopped there, and then answered":   {handed + stopped + says, inbox.Offered, inbox.ViaStop, inbox.Seen},
		"stopped there, and then worked":     {handed + stopped + tool, inbox.Offered, inbox.ViaStop, inbox.Worked},
		"the one before stopped there":       {stopped + handed + says, inbox.Offered, inbox.ViaStop, inbox.Seen},
		"a tool, and no hand-over":           {tool, inbox.Offered, inbox.ViaStop, inbox.Unseen},
		"taken, a tool, and no hand-over":    {tool, inbox.Taken, inbox.ViaStop, inbox.Worked},
		"begun with, a tool":                 {kickoff + tool, inbox.Offered, inbox.ViaKickoff, inbox.Worked},
		"begun with and taken, a tool":       {kickoff + tool, inbox.Taken, inbox.ViaKickoff, inbox.Worked},
		"begun with, none":                   {kickoff + says, inbox.Taken, inbox.ViaKickoff, inbox.Seen},
		"begun with, the tool is cut off":    {kickoff + strings.TrimSuffix(tool, "\n"), inbox.Taken, inbox.ViaKickoff, inbox.Seen},
		"begun with, and nothing is written": {"", inbox.Offered, inbox.ViaKickoff, inbox.Unseen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "projects", "-work", "S.jsonl")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			clienttest.Append(t, path, tt.lines)
			f := inbox.InFlight{State: tt.state, Offering: inbox.Offering{Via: tt.via, Session: "S"}, RawLine: "do it", Tries: inbox.Tries{Attempt: 1}}
			if tt.via == inbox.ViaStop {
				f.Transcript = path
			}
			if got := ArrivedIn(dir)(f); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if f.Session = "another"; tt.via == inbox.ViaKickoff && ArrivedIn(dir)(f) != inbox.Unknown {
				t.Error("something is known of a session without a transcript")
			}
		})
	}
}
