package session

import (
	"testing"
	"time"

	"heartbeat/hook"
)

// A session that waits is left alone, but one that is to end, or whose record
// nobody reports of, is not.
func TestPatience(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		record hook.Record
		told   bool
		want   time.Duration
	}{
		"waiting":            {hook.Record{Phase: hook.Waiting}, true, drowsy},
		"background":         {hook.Record{Phase: hook.Background}, true, drowsy},
		"waiting, untold":    {hook.Record{Phase: hook.Waiting}, false, untold},
		"a turn":             {hook.Record{Phase: hook.Turn}, true, attentive},
		"unattended":         {hook.Record{Phase: hook.Unattended}, true, attentive},
		"waiting to be over": {hook.Record{Phase: hook.Waiting, Ruling: &hook.Ruling{Why: hook.EndReleased}}, true, ruled},
	}
	for name, tt := range tests {
		if got := patience(&tt.record, tt.told); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
