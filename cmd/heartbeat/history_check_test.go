package main

import (
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
)

// TestACheckTookWhatItRan: waiting for a person's answer, or for an agent that is too fast,
// is no part of how long a check took.
func TestACheckTookWhatItRan(t *testing.T) {
	t.Parallel()
	at := time.Now()
	e := journal.Event{At: at, Kind: journal.Checked, Started: at.Add(-time.Hour), TookMS: 1500}
	if h := checkOf(e); h.DurationMS != 1500 {
		t.Errorf("it took %d ms", h.DurationMS)
	}
	if e.TookMS = 0; checkOf(e).DurationMS != time.Hour.Milliseconds() {
		t.Error("what an earlier version has written has no duration")
	}
}
