package main

import (
	"strings"
	"testing"
	"time"

	"heartbeat/config"
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
	l := approval.Of(w.dir + "/state/fleet")
	ask := func(agent, key string) string {
		r, err := l.Ask(t.Context(), approval.Request{Agent: agent, Key: key, Question: "Deploy?"}, config.Approvals{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	needless, needed := ask("triage", "that-was-before"), ask("other", "")
	out := w.ok("status", "triage")
	if strings.Contains(out, needless) {
		t.Errorf("status shows what the agent before has asked:\n%s", out)
	}
	if r, err := l.Find(needed); err != nil || !r.Waits() {
		t.Errorf("what another agent asks: %+v, %v", r, err)
	}
	if out := w.ok("status"); !strings.Contains(out, needed) {
		t.Errorf("status lacks what waits:\n%s", out)
	}
}
