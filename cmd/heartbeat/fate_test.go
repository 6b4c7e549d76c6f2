package main

import (
	"testing"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator"
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

// TestNoCommandLineHasWhatSomebodyElseMadeUp: the id of a prompt stood in it as it was.
func TestNoCommandLineHasWhatSomebodyElseMadeUp(t *testing.T) {
	t.Parallel()
	var p page
	cancelled{[]orchestrator.Cancelled{{Agent: "triage", ID: "$(reboot)", Delivery: "5cc7c8c23e8e", Outcome: orchestrator.CancelDead}}, "heartbeat"}.text(&p)
	letter := dead{DeadEntry: inbox.DeadEntry{ID: "; reboot", DeliveryID: "5cc7c8c23e8e"}}
	p.printf("%s\n", letter.name())
	if got, want := p.buf.String(), "triage: cancelled; heartbeat dead-letter retry 5cc7c8c23e8e queues the prompt again\n5cc7c8c23e8e\n"; got != want {
		t.Errorf("it says %q", got)
	}
}
