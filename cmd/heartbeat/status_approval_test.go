package main

import (
	"strings"
	"testing"

	"heartbeat/orchestrator/approval"
)

// TestStatusAsksForNothingThatNobodyNeeds: without a run it showed a request that was
// needless, until `heartbeat approval` was run.
func TestStatusAsksForNothingThatNobodyNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage: {dir: triage, command: [heartbeat, simulate]}\n  other: {dir: other, command: [heartbeat, simulate]}\n")
	w.ok("apply")
	w.run("run", "--once")
	ask := func(agent, key string) string {
		return w.asks(approval.Request{Agent: agent, Key: key, Question: "Deploy?"})
	}
	needless, needed := ask("triage", "that-was-before"), ask("other", "")
	out := w.ok("status", "triage")
	if strings.Contains(out, needless) {
		t.Errorf("status shows what the agent before has asked:\n%s", out)
	}
	if out := w.ok("approval", "show", needed); !strings.Contains(out, "none yet") {
		t.Errorf("what another agent asks:\n%s", out)
	}
	if out := w.ok("status"); !strings.Contains(out, needed) {
		t.Errorf("status lacks what waits:\n%s", out)
	}
}
