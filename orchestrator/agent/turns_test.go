package agent

import (
	"testing"
	"time"

	"heartbeat/hook"
)

func TestTurnsAreRemembered(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	var all turns
	if all.at(at) {
		t.Error("a turn before any")
	}
	for i, p := range []hook.Phase{hook.Starting, hook.Turn, hook.Turn, hook.Background, hook.Waiting, hook.Turn, hook.Ending, hook.Ended, hook.Turn} {
		all.follow(p, at.Add(time.Duration(i)*time.Minute))
	}
	for minutes, want := range map[float64]bool{0.5: false, 1: true, 2.5: true, 4: true, 4.5: false, 5.5: true, 6.5: false, 7.5: false, 8: true, 99: true} {
		if got := all.at(at.Add(time.Duration(minutes * float64(time.Minute)))); got != want {
			t.Errorf("in a turn at %v minutes: %t, want %t", minutes, got, want)
		}
	}
	for i := range 1000 {
		all.follow(hook.Waiting, at.Add(time.Duration(i)*time.Hour))
		all.follow(hook.Turn, at.Add(time.Duration(i)*time.Hour))
	}
	if len(all) > keepTurns {
		t.Errorf("%d turns are kept", len(all))
	}
}
