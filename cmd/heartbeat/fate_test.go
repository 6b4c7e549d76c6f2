package main

import (
	"testing"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/status"
)

// TestACancelledPromptIsNoMatterOfOnOrphan: restart --now after a cancel said that the prompt
// is given again.
func TestACancelledPromptIsNoMatterOfOnOrphan(t *testing.T) {
	t.Parallel()
	of := &config.Agent{OnOrphan: inbox.Retry}
	s := status.AgentState{Work: &hook.Work{ID: "one"}}
	if got := fate(of, s); got != "its prompt one is given again (on-orphan: retry)" {
		t.Errorf("it is said that %s", got)
	}
	s.Cancelling = true
	if got := fate(of, s); got != "its prompt one is cancelled, as somebody has asked before" {
		t.Errorf("after a cancel it is said that %s", got)
	}
}
