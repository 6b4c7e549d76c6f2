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

// TestARunOfOthersWithdrawsWhatNobodyNeeds: a run has the fleet's store, and an agent that it
// does not run is undone meanwhile.
func TestARunOfOthersWithdrawsWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage: {dir: triage, command: [heartbeat, simulate]}\n  other: {dir: other, command: [heartbeat, simulate]}\n")
	w.ok("apply")
	w.run("run", "--once")
	undone, stays := w.asks(approval.Request{Agent: "triage", Key: "triage", Question: "Deploy?"}), w.asks(approval.Request{Agent: "other", Key: "other", Question: "Deploy?"})
	w.background("other")
	w.ok("unapply", "triage")
	if out := w.ok("approval", "show", undone); !strings.Contains(out, "withdrawn: what apply had set up for the agent was undone") {
		t.Errorf("of the agent that was undone:\n%s", out)
	}
	if out := w.ok("approval", "show", stays); !strings.Contains(out, "none yet") {
		t.Errorf("of the one that runs:\n%s", out)
	}
	until(t, "the journal says so", func() bool { return strings.Contains(w.ok("events"), "approval "+undone+" withdrawn") })
}
