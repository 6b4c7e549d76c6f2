package session

import (
	"bytes"
	"encoding/json"
	"testing"

	"heartbeat/hook"
	"heartbeat/queue/wire"
)

// TestTheEndOfASessionComesAfterWhatItsHooksHaveSaid: the last report could overtake what was asked
// just before it.
func TestTheEndOfASessionComesAfterWhatItsHooksHaveSaid(t *testing.T) {
	t.Parallel()
	for range 100 {
		var out bytes.Buffer
		o := &outlet{enc: json.NewEncoder(&out)}
		for n := range int64(3) {
			o.ask(wire.Request{N: n + 1})
		}
		if err := o.Encode(Report{Phase: hook.Ended}); err != nil {
			t.Fatal(err)
		}
		lines := json.NewDecoder(&out)
		for n := range int64(4) {
			var r Report
			if err := lines.Decode(&r); err != nil || (n < 3) != (r.Ask != nil) || r.Ask != nil && r.Ask.N != n+1 {
				t.Fatalf("report %d is %+v, %v", n, r, err)
			}
		}
	}
}
