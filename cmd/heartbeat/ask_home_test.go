package main

import (
	"os"
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

// TestASessionSendsByItsScheduler: in a session that has another state directory, what it sent had
// no check, no one who waits for the reply, and was not in the way of its own fleet.
func TestASessionSendsByItsScheduler(t *testing.T) {
	t.Parallel()
	self := testbed.Program(t, "heartbeat")
	w := newWorld(t)
	w.put("script.json", `{"rules": [{"match": "pass it on", "steps": [{"tool": "Bash", "command": "cd / && { `+self+` send builder build --id one && `+self+
		` send builder build --id one; `+self+` send builder later --in 1h; `+self+` send nobody x; } >`+w.dir+`/said 2>&1"}, {"reply": "done"}]}]}`)
	w.put("heartbeat.yaml", `version: 1
name: fleet
defaults: {permissions: {allow: [Bash]}}
agents:
  triage: {dir: triage, command: [heartbeat, simulate, --script, `+w.dir+`/script.json], env: {HEARTBEAT_FILE: `+w.dir+`/heartbeat.yaml, HEARTBEAT_STATE_DIR: `+w.dir+`/elsewhere}}
  builder: {dir: builder, command: [heartbeat, simulate]}
`)
	w.background()
	w.ok("send", "triage", "pass it on")
	said := ""
	until(t, "it is passed on", func() bool {
		data, err := os.ReadFile(w.dir + "/said")
		said = string(data)
		return err == nil && strings.Contains(said, `"nobody"`)
	})
	for _, want := range []string{"queued for builder", "already accepted", "to be sent to builder"} {
		if !strings.Contains(said, want) {
			t.Errorf("it was not told %q: %s", want, said)
		}
	}
	if next := w.ok("next"); !strings.Contains(next, "builder") {
		t.Errorf("next: %s", next)
	}
	if _, err := os.Stat(w.dir + "/elsewhere"); err == nil {
		t.Error("something was kept in the session's own state directory")
	}
}
