package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/testbed"
)

// TestAppendWakesAWaitingSession: an entry appended while the Stop hook waits
// reaches the model within 50 ms (median of 20), and waiting costs no model
// call. It lasts longest, so it stands in the file that comes first.
func TestAppendWakesAWaitingSession(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, persist)
		f.teach()
		f.start()
		f.send("first")
		f.phase(hook.Waiting)
		var took []time.Duration
		for n := range 20 {
			f.phase(hook.Waiting)
			text := fmt.Sprintf("wake %02d\n", n)
			inboxFile, err := os.OpenFile(filepath.Join(f.home(), "inbox.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, err = inboxFile.WriteString(text)
			inboxFile.Close()
			if err != nil {
				t.Fatal(err)
			}
			f.Until("the prompt", func() bool { return len(f.calls()) >= n+2 })
			took = append(took, f.reached(n+1).Sub(begun))
		}
		slices.Sort(took)
		t.Logf("append to model call: median %v, slowest %v", took[10], took[19])
		// The target is 50 ms on a machine that does nothing else; here both
		// cores may run other tests, so the bound only finds polling, every 5 s.
		if took[10] > 2*time.Second {
			t.Errorf("append to model call: median %v", took[10])
		}
		f.phase(hook.Waiting)
		before := len(f.calls())
		idle := 15 * time.Second
		if *testbed.Full {
			idle = time.Minute
		}
		time.Sleep(idle) // nothing may happen
		if n := len(f.calls()); n != before {
			t.Errorf("%d model calls while idle", n-before)
		}
		if got := len(f.outbox()); got != 21 {
			t.Errorf("%d entries acknowledged, want 21", got)
		}
	})
}

// reached is when the nth model call came in.
func (f *fleet) reached(n int) time.Time {
	f.t.Helper()
	if f.client.real {
		return f.API.Requests()[n].At
	}
	return readLines[struct{ At time.Time }](f.t, filepath.Join(f.Dir, "model.jsonl"))[n].At
}
