package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"heartbeat/orchestrator/probe"
)

// TestAProbeOfTheRealClient: doctor --probe finds the client that everything was measured
// with to keep all promises, with nothing of this test's environment in reach.
func TestAProbeOfTheRealClient(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	f := newFleet(t, c, nil)
	out, errs, code := f.heartbeat("", "doctor", "--probe", "--client", c.path, "-o", "json")
	var said struct {
		Data struct {
			Clients []struct {
				probe.Result
				Verdict probe.Verdict
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(out), "\n") // before the last: that it still runs
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &said); err != nil || len(said.Data.Clients) != 1 {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out, errs)
	}
	r := said.Data.Clients[0]
	if code != 0 || r.Verdict != probe.Good || len(r.Kept) != len(probe.Promises()) || !r.Isolated {
		t.Errorf("exit %d: %+v", code, r)
	}
	if n := len(f.API.Requests()) + len(f.API.Others()); n != 0 {
		t.Errorf("%d requests reached the address in our environment", n)
	}
	t.Logf("%s: %d ms, once %q", r.Version, r.DurationMS, r.Once)
}
