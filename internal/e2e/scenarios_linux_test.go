package e2e

import (
	"time"

	"heartbeat/internal/simulate/script"
)

// quiet is how long nothing may happen before a story counts as over.
const quiet = 500 * time.Millisecond

const uncapped = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0"

// scenarios are the behaviour that heartbeat relies on.
func scenarios() []scenario {
	return []scenario{
		{name: "turn", drive: stops(1)},
		{
			name:     "tool",
			settings: allow("Bash"),
			model:    []turn{{match: "begin", steps: []script.Step{bash("mkdir sub && cd sub && echo made"), bash("exit 3"), say("done")}}},
			drive:    stops(1),
		},
		{
			name:  "exit-2",
			hooks: replies{"Stop": {HandOver("one\n\n/clear @file --help\n"), HandOver("")}},
			drive: stops(3),
		},
	}
}
