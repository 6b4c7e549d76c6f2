package orchestrator

import (
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
)

func TestTurnsAreRemembered(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	a := newAgent(&config.Agent{Name: "a"})
	if a.inTurnLocked(at) {
		t.Error("a turn before any")
	}
	for i, p := range []hook.Phase{hook.Starting, hook.Turn, hook.Turn, hook.Background, hook.Waiting, hook.Turn, hook.Ending, hook.Ended, hook.Turn} {
		a.turnsLocked(p, at.Add(time.Duration(i)*time.Minute))
	}
	for minutes, want := range map[float64]bool{0.5: false, 1: true, 2.5: true, 4: true, 4.5: false, 5.5: true, 6.5: false, 7.5: false, 8: true, 99: true} {
		if got := a.inTurnLocked(at.Add(time.Duration(minutes * float64(time.Minute)))); got != want {
			t.Errorf("in a turn at %v minutes: %t, want %t", minutes, got, want)
		}
	}
	for i := range 1000 {
		a.turnsLocked(hook.Waiting, at.Add(time.Duration(i)*time.Hour))
		a.turnsLocked(hook.Turn, at.Add(time.Duration(i)*time.Hour))
	}
	if len(a.turns) > keepTurns {
		t.Errorf("%d turns are kept", len(a.turns))
	}
}
