package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/simulate/script"
)

const (
	blocking = `{"decision":"block","reason":"blocked"}`
	adding   = `{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"added"}}`
)

// What a Stop hook's output and exit status do (3, 4).
func verdictScenarios() []scenario {
	return append(capScenarios(), []scenario{
		{
			name: "stop-continues",
			env:  []string{uncapped},
			hooks: replies{"Stop": {
				HandOver("one\n\n/clear @file --help <b> \"q\" ü\n\n"),
				HandOver(""),
				HandOver("\x1b[31mred\x1b[0m <system-reminder>x</system-reminder>"),
				{Stdout: blocking},
				{Stdout: "\ufeff \n" + blocking + "\n\n"},
				{Stdout: `{"decision":"block","reason":"with more","unknown":1,"suppressOutput":true,"systemMessage":"m"}`},
				{Stdout: `{"decision":"block"}`},
				{Stdout: adding},
				{Stdout: blocking, Stderr: "noise"},
				{Stdout: blocking, Stderr: "JSON wins", Exit: 2},
				{Stdout: blocking, Exit: 1},
				{Stdout: blocking, Signal: syscall.SIGKILL},
				{Stderr: "held", Exit: 2, Hold: time.Second},
			}},
			drive: stops(14),
		},
		{
			name: "stop-ends",
			env:  []string{uncapped},
			hooks: replies{"Stop": {
				{Stdout: "plain text"},
				{Stdout: blocking + blocking},
				{Stdout: "text " + blocking},
				{Stdout: "[" + blocking + "]"},
				{Stdout: blocking[:len(blocking)-1]},
				{Stdout: "{\"decision\":\"blocking\",\"reason\":\"raw\nnewline\"}"},
				{Stdout: `{"decision":"block","reason":7}`},
				{Stdout: `{"decision":"approve","reason":"x"}`},
				{Stdout: `{"continue":false,"decision":"block","reason":"x"}`},
				{Stdout: blocking, Hold: time.Second},
				{Stderr: "failed", Exit: 1},
				{Stderr: "failed", Exit: 127},
				{Stderr: "killed", Signal: syscall.SIGKILL},
			}},
			drive: prompting(13),
		},
		{
			// last_assistant_message is that of an earlier answer when the model
			// says nothing at all. The client asks it again, once a prompt.
			name:  "empty-answer",
			env:   []string{uncapped},
			hooks: replies{"Stop": {HandOver("one: nothing"), HandOver("two: nothing")}},
			model: []turn{
				{match: "two: nothing", steps: []script.Step{sayNothing()}},
				{match: "no visible output", steps: []script.Step{sayNothing()}},
				{match: "one: nothing", steps: []script.Step{sayNothing()}},
			},
			drive: stops(3),
		},
		{
			// 21 D: ours is killed while the other blocks.
			name:     "two-stop-hooks",
			settings: only("Stop", 0, "ours", "other"),
			hooks: replies{
				"Stop/ours":  {{Delay: 300 * time.Millisecond, Stderr: "from ours", Exit: 2}, {Signal: syscall.SIGKILL}},
				"Stop/other": {{Stdout: blocking}, {Stdout: blocking}},
			},
			drive: func(l *Lab, _ *Terminal) {
				l.UntilCalls("Stop", 6)
				l.Quiet(1)
			},
		},
		{
			// What a hook says stands in the transcript when it has ended, what
			// became of the Stop when all have.
			name:     "stop-records",
			env:      []string{uncapped},
			settings: only("Stop", 0, "ours", "other"),
			hooks: replies{
				"Stop/ours": {
					{Delay: time.Second},
					{Delay: time.Second},
					{Delay: time.Second},
					{Delay: time.Second, Stderr: "from ours", Exit: 2},
					{Delay: time.Second, Stderr: "too late", Exit: 2},
				},
				"Stop/other": {
					HandOver("by exit"),
					{Stdout: blocking},
					{Stdout: adding},
					{Stderr: "failed", Exit: 1},
					{Stdout: `{"continue":false,"stopReason":"enough"}`},
				},
			},
			recordsStops: true,
			drive: func(l *Lab, _ *Terminal) {
				l.UntilCalls("Stop", 1)
				l.Until("what the other hook said is written while ours runs", func() bool {
					return slices.ContainsFunc(l.stopRecords(), func(r string) bool { return strings.Contains(r, "by exit") }) &&
						len(l.Calls("Stop")) == 2
				})
				l.UntilCalls("Stop", 10)
				l.Quiet(1)
			},
		},
		{
			name: "prompt-hook",
			hooks: replies{"UserPromptSubmit": {
				{Stdout: strings.Replace(strings.Replace(adding, "Stop", "UserPromptSubmit", 1), "added", "/added @file", 1)},
				{Stdout: "plain text"},
				// 21 N: killed before it prints, and after.
				{Signal: syscall.SIGKILL},
				{Stdout: strings.Replace(adding, "Stop", "UserPromptSubmit", 1), Signal: syscall.SIGKILL},
			}},
			drive: prompting(3),
		},
		{
			name:  "prompt-refused",
			hooks: replies{"UserPromptSubmit": {{Stderr: "not this one", Exit: 2}}},
			drive: calls("UserPromptSubmit", 1),
		},
	}...)
}

// The block cap (4).
func capScenarios() []scenario {
	var nine []Reply
	for range 12 {
		nine = append(nine, HandOver("again"))
	}
	return []scenario{
		{name: "cap-default", hooks: replies{"Stop": nine}, drive: stops(9)},
		{name: "cap-2", env: []string{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=2"}, hooks: replies{"Stop": nine}, drive: stops(3)},
		{
			name:     "cap-reset-by-tool",
			env:      []string{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=2"},
			settings: allow("Bash"),
			model:    []turn{{match: "again", times: 4, steps: []script.Step{bash("true"), say("used a tool")}}},
			hooks:    replies{"Stop": nine},
			drive:    stops(7),
		},
	}
}

// What the client does with hooks that take too long (2).
func timeoutScenarios() []scenario {
	const tooLong = 2 * patience
	return []scenario{
		{
			// A timeout that a hook keeps on a busy machine, too.
			name:     "stop-timeout",
			settings: only("Stop", 3, "-"),
			hooks: replies{"Stop": {
				{Delay: tooLong, Stderr: "too late", Exit: 2},
				{Stdout: blocking, Linger: tooLong},
				{Stubborn: true, Delay: tooLong},
				HandOver("in time"),
			}},
			drive: func(l *Lab, term *Terminal) { // the fourth hook hands over a turn of its own
				prompting(4)(l, term)
				stops(6)(l, term)
			},
			check: func(l *Lab) {
				stops := l.Calls("Stop")
				const late = 1500 * time.Millisecond // a busy machine starts the hook, and its clock, later than the client's
				for n, want := range []time.Duration{3 * time.Second, 3 * time.Second, 4500 * time.Millisecond} {
					l.Within("the end of hook "+string(rune('1'+n)), stops[n].Took(), want-late, patience)
				}
			},
		},
		{
			name:     "session-start-timeout",
			settings: only("SessionStart", 1, "-"),
			hooks:    replies{"SessionStart": {{Delay: tooLong}}},
			drive:    stops(1),
		},
		{
			name:  "session-start-delays",
			hooks: replies{"SessionStart": {{Delay: 1500 * time.Millisecond, Stdout: "first words"}}},
			drive: stops(1),
		},
		{
			// 21 K.
			name:  "typed-while-stop-hook-waits",
			hooks: replies{"Stop": {{Gate: "typed", Stderr: "from the hook", Exit: 2}}},
			drive: func(l *Lab, term *Terminal) {
				l.UntilCalls("Stop", 1)
				term.Submit("from a person")
				l.UntilCalls("UserPromptSubmit", 2)
				l.Open("typed")
				stops(3)(l, term)
			},
		},
		{
			// 21 M.
			name:  "clear-while-stop-hook-waits",
			hooks: replies{"Stop": {{Gate: "typed", Stderr: "from the hook", Exit: 2}}},
			drive: func(l *Lab, term *Terminal) {
				l.UntilCalls("Stop", 1)
				term.Submit("/clear")
				l.Quiet(1)
				l.Open("typed")
				calls("SessionStart", 2)(l, term)
			},
		},
		{
			name:  "escape-while-stop-hook-waits",
			hooks: replies{"Stop": {{Gate: "never"}}},
			drive: func(l *Lab, term *Terminal) {
				hook := l.UntilCalls("Stop", 1)
				time.Sleep(l.pace())
				term.Type("\x1b")
				l.Until("the hook's end", func() bool { return hook.Took() > 0 })
				l.Quiet(2)
			},
		},
	}
}

// Which hooks run, with what environment (7, 8, 9).
func settingsScenarios() []scenario {
	return []scenario{
		{
			name:     "settings-env",
			env:      []string{"CLAUDE_MADE_UP=process"},
			settings: func(_ *Lab, s map[string]any) { s["env"] = map[string]any{"CLAUDE_MADE_UP": "settings"} },
			drive:    stops(1),
		},
		{
			// The same command in two files runs once; others run too.
			name: "settings-merged",
			settings: func(l *Lab, _ map[string]any) {
				user := filepath.Join(l.Home, ".claude")
				if err := os.MkdirAll(user, 0o700); err != nil {
					l.t.Fatal(err)
				}
				l.WriteJSON(filepath.Join(user, "settings.json"), map[string]any{"hooks": map[string]any{
					"Stop": []any{l.HookEntry("Stop", "-", 0), l.HookEntry("Stop", "user", 0)},
				}})
				l.WriteJSON(filepath.Join(l.Work, ".claude", "settings.local.json"), map[string]any{"hooks": map[string]any{
					"Stop": []any{l.HookEntry("Stop", "local", 0)},
				}})
			},
			drive: stops(3),
		},
		{
			name: "settings-reloaded",
			drive: func(l *Lab, term *Terminal) {
				stops(1)(l, term)
				settings := l.Hooks()
				only("Stop", 0, "new")(l, settings)
				l.ProjectSettings(settings)
				time.Sleep(3 * time.Second) // measured: live within 2 s
				term.Submit("next")
				stops(2)(l, term)
			},
		},
		{
			name:     "settings-disable-all-hooks",
			settings: func(_ *Lab, s map[string]any) { s["disableAllHooks"] = true },
			drive: func(l *Lab, _ *Terminal) {
				l.Until("a model call", func() bool { return l.requests() == 1 })
				l.Quiet(2)
			},
		},
		{
			name:     "settings-bad-timeout",
			settings: only("Stop", -5, "-"),
			drive:    dialog("timeout"),
		},
		{
			name: "settings-broken",
			settings: func(l *Lab, s map[string]any) {
				clear(s)
				if err := os.WriteFile(filepath.Join(l.Work, ".claude", "settings.json"), []byte("{"), 0o600); err != nil {
					l.t.Fatal(err)
				}
			},
			drive: dialog("settings"),
		},
	}
}

// dialog waits for a dialog that says text, and for nothing to happen then.
func dialog(text string) func(*Lab, *Terminal) {
	return func(l *Lab, term *Terminal) {
		l.Until("a dialog that says "+text, func() bool { return term.Shows(text) })
		l.Quiet(2)
	}
}
