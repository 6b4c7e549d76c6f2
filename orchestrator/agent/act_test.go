package agent

import (
	"testing"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// TestReadersAreToldOfACancellation until it is carried out: what becomes of the prompt is
// no matter of on-orphan any more.
func TestReadersAreToldOfACancellation(t *testing.T) {
	t.Parallel()
	a := New(&config.Agent{Name: "a"}, noon)
	a.Begin("", noon)
	a.Launched("s", Runs, noon)
	a.Reports(session.Report{Phase: hook.Turn, Work: &hook.Work{DeliveryID: "d", ID: "one"}}, noon)
	if a.Describe().Cancelling {
		t.Error("nobody has asked for it yet")
	}
	if _, why := a.Cancel("", false); why != "" {
		t.Fatal(why)
	}
	if d := a.Describe(); !d.Cancelling || d.Work == nil {
		t.Errorf("it is not told: %+v", d)
	}
}
