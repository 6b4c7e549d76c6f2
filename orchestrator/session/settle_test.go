package session

import (
	"testing"
	"time"

	"heartbeat/hook"
)

// TestWhatASessionSaysThatHasDoneNothing: that nothing was queued only if that is so.
func TestWhatASessionSaysThatHasDoneNothing(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]hook.Progress{
		"nothing was queued": {}, "nothing was done": {Undone: 1}, "": {Undone: 1, SetAside: 1},
	} {
		r := &hook.Record{Progress: p}
		afterSettling(r, false, time.Now())
		if r.Ruling == nil || r.Ruling.Why != hook.EndDrained || string(r.Ruling.Detail) != want || r.Phase != hook.Ending {
			t.Errorf("%+v: %+v, want %q", p, r.Ruling, want)
		}
	}
}
