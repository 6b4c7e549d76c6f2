package e2e

import (
	"os"
	"path/filepath"
	"time"

	"heartbeat/internal/simulate/script"
)

// untilGo runs until the test makes the file "go" in the workspace.
const untilGo = `while [ ! -e go ]; do sleep 0.05; done; echo finished`

// letGo lets commands go on that wait in untilGo.
func (l *Lab) letGo() {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.Work, "go"), nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// Background tasks (12, 21).
func backgroundScenarios() []scenario {
	return []scenario{
		{
			// 21 A: an entry that was handed over starts a task.
			name:     "background",
			settings: allow("Bash"),
			hooks:    replies{"Stop": {HandOver("work behind")}},
			model:    []turn{{match: "work behind", steps: []script.Step{background(untilGo), say("started")}}},
			drive: func(l *Lab, term *Terminal) {
				stops(2)(l, term)
				l.letGo()
				stops(3)(l, term)
			},
		},
		{
			// 21 B, E: a task that does not end by itself; other turns go on.
			name:     "background-endless",
			settings: allow("Bash"),
			model:    []turn{{match: "begin", steps: []script.Step{background(trapping), say("started")}}},
			drive:    prompting(1),
			check: func(l *Lab) {
				l.started[0].End()
				appears("terminated")(l, nil)
			},
		},
		{
			// 21 G: the task ends while the last answer is on its way.
			name:     "background-ends-in-turn",
			settings: allow("Bash"),
			model:    []turn{{match: "begin", steps: []script.Step{background(untilGo), think(2 * time.Second), say("started")}}},
			drive: func(l *Lab, term *Terminal) {
				l.Until("the last model call", func() bool { return l.requests() == 2 })
				l.letGo()
				stops(2)(l, term)
			},
		},
		{
			name:     "background-ends-in-stop-hook",
			settings: allow("Bash"),
			hooks:    replies{"Stop": {{Gate: "ended", Stderr: "next", Exit: 2}}},
			model:    []turn{{match: "begin", steps: []script.Step{background(untilGo), say("started")}}},
			drive: func(l *Lab, term *Terminal) {
				l.UntilCalls("Stop", 1)
				l.letGo()
				l.Quiet(2)
				l.Open("ended")
				stops(3)(l, term)
			},
		},
	}
}

// Subagents run in the background (18).
func subagentScenarios() []scenario {
	return []scenario{{
		name: "subagent",
		model: []turn{
			{match: "begin", steps: []script.Step{subagent("sub answer", 1500*time.Millisecond), say("started")}},
		},
		settings:   allow("Agent"),
		concurrent: true,
		events:     []string{"UserPromptSubmit", "SubagentStop", "Stop", "SessionEnd"},
		drive:      stops(2),
	}}
}

// Permissions (5).
func permissionScenarios() []scenario {
	touch := []turn{{match: "begin", steps: []script.Step{bash("touch touched"), say("went on")}}}
	manual := []string{"--permission-mode", "default", "--", "begin"}
	decision := func(inner string) replies {
		return replies{"PermissionRequest": {{Stdout: `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":` + inner + `}}`}}}
	}
	return []scenario{
		{name: "permission-dont-ask", model: touch, drive: stops(1)},
		{
			name: "permission-hangs", model: touch, args: manual,
			drive: calls("Notification", 1),
		},
		{
			name: "permission-denied", model: touch, args: manual,
			hooks: decision(`{"behavior":"deny","message":"not here"}`), drive: stops(1),
			check: func(l *Lab) {
				if r := l.API.Requests(); l.client.real && r[1].Copies("not here") != 1 {
					l.t.Error("the model was not told why")
				}
			},
		},
		{
			name: "permission-allowed", model: touch, args: manual,
			hooks: decision(`{"behavior":"allow"}`), drive: stops(1),
			check: func(l *Lab) { appears("touched")(l, nil) },
		},
		{
			name: "permission-interrupted", model: touch, args: manual,
			hooks: decision(`{"behavior":"deny","message":"not here","interrupt":true}`),
			drive: func(l *Lab, _ *Terminal) {
				l.UntilCalls("PermissionRequest", 1)
				l.Quiet(3)
			},
		},
		{
			name: "permission-by-pre-tool-use", model: touch, args: manual,
			hooks: replies{"PreToolUse": {{Stdout: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`}}},
			drive: stops(1),
		},
		{
			name:  "permission-mode-from-settings",
			model: touch,
			args:  []string{"--", "begin"},
			settings: func(_ *Lab, s map[string]any) {
				s["permissions"] = map[string]any{"defaultMode": "dontAsk", "allow": []string{"Bash"}}
			},
			drive: stops(1),
		},
	}
}

// API failures that the client does not retry, and the turn after one (16).
func failureScenarios() []scenario {
	var out []scenario
	for _, kind := range []string{
		"rate_limit", "server_error", "authentication_failed", "billing_error", "model_not_found", "invalid_request",
	} {
		out = append(out, scenario{
			name: "failure-" + kind,
			// The prompt that failed is sent again with the next one.
			model: []turn{
				{match: "next", steps: []script.Step{say("ok")}},
				{match: "begin", steps: []script.Step{fail(kind)}},
			},
			env:   []string{"CLAUDE_CODE_MAX_RETRIES=0"},
			hooks: replies{"StopFailure": {HandOver("ignored")}},
			drive: func(l *Lab, term *Terminal) {
				calls("StopFailure", 1)(l, term)
				term.Submit("next")
				stops(1)(l, term)
			},
		})
	}
	return out
}
