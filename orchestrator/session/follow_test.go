package session

import (
	"testing"
	"time"

	"heartbeat/hook"
)

// A session that waits is left alone, but one that is to end is not.
func TestPatience(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		record hook.Record
		want   time.Duration
	}{
		"waiting":            {hook.Record{Phase: hook.Waiting}, drowsy},
		"background":         {hook.Record{Phase: hook.Background}, drowsy},
		"a turn":             {hook.Record{Phase: hook.Turn}, attentive},
		"unattended":         {hook.Record{Phase: hook.Unattended}, attentive},
		"waiting to be over": {hook.Record{Phase: hook.Waiting, Ruling: &hook.Ruling{Why: hook.EndReleased}}, ruled},
	}
	for name, tt := range tests {
		if got := patience(&tt.record); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
