package agent

import (
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// TestWhatTriggersQueuedBeforeTheEndHurriesNobody, and hides nobody who sends something
// after it: at a session's end everything is counted anew.
func TestWhatTriggersQueuedBeforeTheEndHurriesNobody(t *testing.T) {
	t.Parallel()
	fails := func() *Agent {
		a := fresh()
		a.def.MaxRestarts = 100
		a.Begin("", noon)
		a.Launched("s", Runs, noon)
		for range 3 {
			a.Fired()
		}
		a.past.history.failures = 8 // its delay is long
		a.Ended(End{Outcome: session.Outcome{Why: hook.EndCrashed}, Left: true, Queued: 3}, noon, 0)
		a.Settle(noon)
		if !a.past.backOff.until.After(noon.Add(HurryAfter)) {
			t.Fatalf("backs off until %v", a.past.backOff.until)
		}
		return a
	}
	if a := fails(); !a.Recounted(4, nil, noon.Add(time.Second)) {
		t.Error("a prompt that somebody has sent hurries nobody")
	}
	a := fails()
	if a.Fired(); a.Recounted(4, nil, noon.Add(time.Second)) {
		t.Error("a trigger hurries it")
	}
}
