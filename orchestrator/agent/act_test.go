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

// TestASessionThatHasSaidNothingYetIsNotCancelled: its prompt was not known, so that a turn
// without one was to be cancelled. Then its first report seemed to say that this had
// finished, and a person was told so while the prompt went on.
func TestASessionThatHasSaidNothingYetIsNotCancelled(t *testing.T) {
	t.Parallel()
	for _, only := range []string{"", "one"} {
		a := New(&config.Agent{Name: "a"}, noon)
		a.Begin("", noon)
		a.Launched("s", Runs, noon)
		if _, why := a.Cancel(only, false); why != "its session is only just starting" || a.Cancels() != nil {
			t.Errorf("cancel %q: %q, %+v", only, why, a.Cancels())
		}
		a.Reports(session.Report{Phase: hook.Starting, Work: &hook.Work{DeliveryID: "d", ID: "one"}}, noon)
		if work, why := a.Cancel(only, false); work == nil || why != "" {
			t.Errorf("cancel %q when its prompt is known: %v, %q", only, work, why)
		}
	}
}
