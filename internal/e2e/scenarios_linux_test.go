package e2e

import (
	"slices"
	"time"

	"heartbeat/internal/simulate/script"
)

// uncapped turns off the client's limit of consecutive blocks.
const uncapped = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0"

// scenarios are the behaviour that heartbeat relies on; the numbers are those
// of the notes on the client in which it was first measured.
func scenarios() []scenario {
	return slices.Concat(
		turnScenarios(), verdictScenarios(), timeoutScenarios(), startScenarios(), settingsScenarios(),
		permissionScenarios(), endScenarios(), interruptScenarios(), backgroundScenarios(), failureScenarios(),
		subagentScenarios(),
	)
}

// Payloads, environment and order of the hooks of plain turns (1, 7).
func turnScenarios() []scenario {
	return []scenario{
		{name: "turn", drive: stops(1)},
		{
			name:     "tool",
			settings: allow("Bash"),
			model:    []turn{{match: "begin", steps: []script.Step{bash("mkdir sub && cd sub && echo made"), bash("exit 3"), say("done")}}},
			drive:    stops(1),
		},
		{
			name: "typed-prompt",
			args: []string{"--permission-mode", "dontAsk"},
			drive: func(l *Lab, term *Terminal) {
				l.UntilCalls("SessionStart", 1)
				l.Quiet(2)
				term.Submit("typed one")
				l.UntilCalls("Stop", 1)
				l.Quiet(1)
				term.Submit("typed two")
				stops(2)(l, term)
			},
		},
		{
			// What is typed in a turn comes after it, all together.
			name:  "typed-in-a-turn",
			model: []turn{{match: "begin", times: 1, steps: []script.Step{think(6 * time.Second), say("done")}}},
			drive: func(l *Lab, term *Terminal) {
				l.Until("the turn", func() bool { return l.requests() == 1 })
				term.Submit("typed one")
				l.UntilCalls("UserPromptSubmit", 2)
				term.Submit("typed two")
				stops(2)(l, term)
			},
		},
		{
			// Between two tools the model is told in the turn.
			name:     "typed-between-tools",
			settings: allow("Bash"),
			model:    []turn{{match: "begin", times: 1, steps: []script.Step{bash("sleep 4"), say("done")}}},
			drive: func(l *Lab, term *Terminal) {
				l.UntilCalls("PreToolUse", 1)
				term.Submit("typed one")
				stops(1)(l, term)
			},
		},
		{
			name:  "typed-in-a-turn-then-escape",
			model: []turn{{match: "begin", times: 1, steps: []script.Step{think(20 * time.Second), say("done")}}},
			drive: func(l *Lab, term *Terminal) {
				l.Until("the turn", func() bool { return l.requests() == 1 })
				term.Submit("typed one")
				l.UntilCalls("UserPromptSubmit", 2)
				time.Sleep(l.pace())
				term.Type("\x1b")
				stops(1)(l, term)
			},
		},
	}
}

// stops waits for the nth Stop and for nothing more to come.
func stops(n int) func(*Lab, *Terminal) { return calls("Stop", n) }

func calls(event string, n int) func(*Lab, *Terminal) {
	return func(l *Lab, _ *Terminal) {
		l.UntilCalls(event, n)
		l.Quiet(1)
	}
}

// prompting types a prompt whenever the session has stopped: n times, after
// the first prompt.
func prompting(n int) func(*Lab, *Terminal) {
	return func(l *Lab, term *Terminal) {
		for i := range n {
			stops(i+1)(l, term)
			term.Submit("next")
			l.UntilCalls("Stop", i+2)
		}
		l.Quiet(1)
	}
}

// allow lets the model use tools.
func allow(rules ...string) func(*Lab, map[string]any) {
	return func(_ *Lab, settings map[string]any) {
		settings["permissions"] = map[string]any{"allow": rules}
	}
}

// only replaces the lab's hooks of one event.
func only(event string, timeout float64, tags ...string) func(*Lab, map[string]any) {
	return func(l *Lab, settings map[string]any) {
		var entries []any
		for _, tag := range tags {
			entries = append(entries, l.HookEntry(event, tag, timeout))
		}
		settings["hooks"].(map[string]any)[event] = entries
	}
}
