package doctor

import (
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/status"
)

// Who is not told, and that nobody would say that the scheduler is gone.
func TestWhoIsNotTold(t *testing.T) {
	t.Parallel()
	now := time.Now()
	found := Examine(&Facts{Now: now, Unwatched: true, LocalZone: true, Untold: []status.Untold{{Target: "phone", Since: now.Add(-2 * time.Hour), Why: "connection refused"}}})
	if got := find(found, "target-fails"); got == nil || got.Severity != Warning || !strings.Contains(got.Seen, "notices to phone have failed for 2h: connection refused") || got.Fix != "heartbeat notify test phone" {
		t.Errorf("%+v", found)
	}
	pinged := Examine(&Facts{Now: now, LocalZone: true, Unpinged: &status.Unpinged{Since: now.Add(-time.Hour), Why: "404"}})
	if got := find(pinged, "ping-fails"); got == nil || got.Severity != Warning || got.Seen != "the ping has not arrived for 1h: 404" {
		t.Errorf("%+v", pinged)
	}
	if got := find(found, "not-watched"); got == nil || got.Severity != Info || !strings.Contains(got.Fix, "ping:") {
		t.Errorf("%+v", found)
	}
}
