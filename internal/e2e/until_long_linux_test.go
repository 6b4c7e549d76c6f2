package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/fakeapi"
	"heartbeat/internal/testbed"
)

// stopTimeout is the time-out of the Stop hook in the settings that `apply` has written.
func (f *fleet) stopTimeout() time.Duration {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.Work, ".claude", "settings.json"))
	if err != nil {
		f.t.Fatal(err)
	}
	var settings struct {
		Hooks map[string][]struct{ Hooks []struct{ Timeout float64 } }
	}
	if err := json.Unmarshal(data, &settings); err != nil || len(settings.Hooks["Stop"]) != 1 || len(settings.Hooks["Stop"][0].Hooks) != 1 {
		f.t.Fatalf("%v; the settings: %s", err, data)
	}
	return time.Duration(settings.Hooks["Stop"][0].Hooks[0].Timeout * float64(time.Second))
}

// TestTheHookWaitsForALongCheck: the client ends no Stop hook before the check has an
// answer, neither by its own time-out of ten minutes nor by anything of ours, and the
// next iteration comes by that same hook. -full has a check of a quarter of an hour.
func TestTheHookWaitsForALongCheck(t *testing.T) {
	t.Parallel()
	takes := 8 * time.Second
	if *testbed.Full {
		takes = 905 * time.Second
	}
	// What bounds a turn is shorter than a quarter of an hour.
	f := newFleet(t, realClient(t), []string{
		"mode: drain", "stall-timeout: 2m", "timeout: 3m",
		fmt.Sprintf(`until: {check: [sh, -c, "[ -e once ] || { touch once; sleep %d; echo not yet; exit 1; }"], check-timeout: 1d, hold: 1d}`, takes/time.Second),
	})
	f.API.Add(fakeapi.Rule{Answer: fakeapi.Answer{Text: "done"}})
	f.send("work")
	began := time.Now()
	f.start()
	f.UntilWithin("the verdict", takes+patience, func() bool { return len(f.outbox()) > 0 })
	if took := time.Since(began); took < takes {
		t.Errorf("it was done after %v", took)
	}
	f.Until("the session's end", func() bool { return len(f.ends()) > 0 })
	if done := f.outbox(); len(done) != 1 || done[0].Verdict == nil || done[0].Verdict.Iteration != 2 || done[0].Attempt != 1 {
		t.Errorf("done: %+v", done)
	}
	if got := f.prompts(); len(got) != 2 || !strings.Contains(got[1], "\nnot yet\n") || !strings.HasSuffix(got[1], "\n\nwork") {
		t.Errorf("handed over: %q", got)
	}
	if why := f.ends(); len(why) != 1 || why[0] != "drained" {
		t.Errorf("sessions ended by %q", why)
	}
	if got := f.stopTimeout(); got < 24*time.Hour+5*time.Minute {
		t.Errorf("the client ends our Stop hook after %v", got)
	}
}

// TestManyIterationsInOneSession are more than the client lets a Stop hook go on by
// itself, and more than ours hands over without a verdict. Each arrives once, in the
// same conversation.
func TestManyIterationsInOneSession(t *testing.T) {
	t.Parallel()
	if !*testbed.Full {
		t.Skip("seven minutes: an agent that is done in less than 15 s each time is slowed down, and given up")
	}
	const many = 25
	f := newFleet(t, realClient(t), []string{
		fmt.Sprintf(`until: {check: [sh, -c, "echo x >> runs; n=$(wc -l < runs); [ $n -ge %d ] || { date +%%s%%N; tr 0-9 a-j < runs | md5sum; exit 1; }"], max-iterations: 0}`, many),
	})
	f.API.Add(fakeapi.Rule{Answer: fakeapi.Answer{Text: "done", Delay: 15500 * time.Millisecond}})
	f.send("work")
	f.start()
	f.UntilWithin("the verdict", many*16*time.Second+patience, func() bool { return len(f.outbox()) > 0 })
	if done := f.outbox(); len(done) != 1 || done[0].Verdict == nil || done[0].Verdict.Iteration != many || done[0].Attempt != 1 {
		t.Errorf("done: %+v", done)
	}
	f.Until("the session's end", func() bool { return len(f.ends()) > 0 })
	if why := f.ends(); len(why) != 1 || why[0] != "drained" {
		t.Errorf("sessions ended by %q", why)
	}
	requests := f.API.Requests()
	if len(requests) != many {
		t.Fatalf("%d calls of the model, want %d", len(requests), many)
	}
	for n, r := range requests {
		if got := strings.Join(r.Prompts(), "|"); n > 0 && (!strings.Contains(got, fmt.Sprintf("iteration %d", n+1)) || r.Copies(fmt.Sprintf("iteration %d ", n+1)) != 1) {
			t.Errorf("call %d: %q", n+1, got)
		}
		if r.Session != requests[0].Session || len(r.Messages) < 2*n {
			t.Errorf("call %d is of conversation %s with %d messages", n+1, r.Session, len(r.Messages))
		}
	}
}
