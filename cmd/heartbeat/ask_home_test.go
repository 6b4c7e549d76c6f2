package main

import (
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// TestAnAgentWithAHomeOfItsOwnAsks: its session looked for the scheduler in its own HOME,
// and nobody was asked.
func TestAnAgentWithAHomeOfItsOwnAsks(t *testing.T) {
	t.Parallel()
	self := testbed.Program(t, "heartbeat")
	f := startFleet(t, `{"rules": [{"steps": [{"tool": "Bash", "command": "cd / && `+self+` approval ask 'May I?'"}, {"reply": "asked"}]}]}`,
		`env: {HOME: /nowhere}`, `env-deny: [HEARTBEAT_STATE_DIR, HEARTBEAT_FILE, XDG_*]`)
	f.ok("send", "triage", "ask")
	until(t, "a person is asked", func() bool { return strings.Contains(f.run("approval").stdout, "May I?") })
}
