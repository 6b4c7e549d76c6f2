package e2e

import (
	"os"
	"path/filepath"

	"heartbeat/internal/simulate/script"
)

const sessionID = "0f9a1c6e-5f3a-4b8e-9d55-6d1f1c1e2a3b"

// The command line, the first prompt, trust and resumed sessions (8, 11, 13).
func startScenarios() []scenario {
	return []scenario{
		{
			name: "no-prompt",
			args: []string{"--permission-mode", "dontAsk"},
			drive: func(l *Lab, _ *Terminal) {
				l.UntilCalls("SessionStart", 1)
				l.Quiet(4)
			},
		},
		{
			name: "prompt-verbatim",
			env:  []string{"CLAUDE_CODE_DISABLE_FILE_MENTIONS=1"},
			args: []string{"--permission-mode", "dontAsk", "--", "Task from the queue:\n\n/exit\n--dangerously-skip-permissions @note.txt\n!touch x\n# a <system-reminder>b</system-reminder> [Image #1]\n\n"},
			settings: func(l *Lab, _ map[string]any) {
				if err := os.WriteFile(filepath.Join(l.Work, "note.txt"), []byte("the note"), 0o600); err != nil {
					l.t.Fatal(err)
				}
			},
			drive: stops(1),
		},
		{
			name: "prompt-is-clear",
			args: []string{"--permission-mode", "dontAsk", "--", "/clear"},
			drive: func(l *Lab, _ *Terminal) {
				l.UntilCalls("SessionStart", 1)
				l.Quiet(4)
			},
		},
		{
			name: "prompt-is-exit",
			args: []string{"--permission-mode", "dontAsk", "--", "/exit"},
			drive: func(l *Lab, term *Terminal) {
				term.WaitExit(patience)
			},
		},
		{
			name:     "untrusted",
			settings: func(l *Lab, _ map[string]any) { l.Trust() },
			drive:    dialog("trust"),
		},
		{
			name:     "untrusted-but-sandboxed",
			env:      []string{"CLAUDE_CODE_SANDBOXED=1"},
			settings: func(l *Lab, _ map[string]any) { l.Trust() },
			drive:    stops(1),
		},
		{
			name:     "trusted-parent",
			settings: func(l *Lab, _ map[string]any) { l.Trust(l.Dir) },
			drive:    stops(1),
		},
		{
			name: "settings-flag",
			args: []string{"--permission-mode", "dontAsk", "--settings", "../flag.json", "--", "begin"},
			settings: func(l *Lab, s map[string]any) {
				l.WriteJSON(filepath.Join(l.Dir, "flag.json"), l.Hooks())
				clear(s)
			},
			drive: stops(1),
		},
		{
			// What lies in the workspace counts no more: not its hooks, rules and
			// variables, nor what turns ours off.
			name:  "settings-only",
			args:  []string{"--permission-mode", "dontAsk", "--settings", "../flag.json", "--setting-sources=", "--strict-mcp-config", "--", "begin"},
			model: []turn{{match: "begin", steps: []script.Step{bash("touch by-the-workspace"), bash("touch by-ours"), say("done")}}},
			settings: func(l *Lab, s map[string]any) {
				ours := l.Hooks()
				ours["permissions"] = map[string]any{"allow": []string{"Bash(touch by-ours)"}}
				l.WriteJSON(filepath.Join(l.Dir, "flag.json"), ours)
				s["env"] = map[string]string{"FROM_THE_WORKSPACE": "1"}
				s["permissions"] = map[string]any{"allow": []string{"Bash(touch by-the-workspace)"}}
				only("Stop", 0, "workspace")(l, s)
				l.WriteJSON(filepath.Join(l.Work, ".claude", "settings.local.json"), map[string]any{"disableAllHooks": true})
				if err := os.WriteFile(filepath.Join(l.Work, ".mcp.json"), []byte(`{"mcpServers":{"theirs":{"command":"true"}}}`), 0o600); err != nil {
					l.t.Fatal(err)
				}
			},
			drive: stops(1),
			check: func(l *Lab) {
				if made, _ := filepath.Glob(filepath.Join(l.Work, "by-*")); len(made) != 1 || filepath.Base(made[0]) != "by-ours" {
					l.t.Errorf("what was allowed: %v", made)
				}
				for _, c := range l.Calls() {
					if _, ok := c.Env["FROM_THE_WORKSPACE"]; ok {
						l.t.Errorf("%s has the workspace's variable", c.Event)
					}
				}
			},
		},
		{
			name: "session-id-then-resume",
			args: []string{"--permission-mode", "dontAsk", "--session-id", sessionID, "--", "begin"},
			drive: func(l *Lab, term *Terminal) {
				stops(1)(l, term)
				term.End()
				again := l.Start("--permission-mode", "dontAsk", "--session-id", sessionID, "--", "again")
				again.WaitExit(patience)
				again = l.Start("--permission-mode", "dontAsk", "--resume", sessionID, "--", "go on")
				stops(2)(l, again)
			},
		},
		{
			name: "resume-unknown",
			args: []string{"--permission-mode", "dontAsk", "--resume", sessionID, "--", "begin"},
			drive: func(l *Lab, term *Terminal) {
				term.WaitExit(patience)
				l.Quiet(1)
			},
		},
		{
			// 21 L: the transcript is written behind, but within 2 s.
			name:  "transcript",
			hooks: replies{"Stop": {HandOver("the hand-over")}},
			drive: stops(2),
			check: func(l *Lab) {
				path := l.Calls("Stop")[0].Text("transcript_path")
				record := "Stop hook feedback:\\n[" + l.HookEntry("Stop", "-", 0)["hooks"].([]any)[0].(map[string]any)["command"].(string) + "]: the hand-over"
				l.Holds(path, record)
			},
		},
	}
}
