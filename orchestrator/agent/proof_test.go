package agent

import (
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// TestWhatASessionHasLeftIsCheckedAfterItsEnd: a check that ended before would be
// followed by the next session, and on-orphan would not be asked.
func TestWhatASessionHasLeftIsCheckedAfterItsEnd(t *testing.T) {
	t.Parallel()
	a := New(&config.Agent{Name: "a"}, noon)
	a.Begin("", noon)
	a.Launched("s", Runs, noon)
	a.LeftToCheck()
	if a.BeginCheck() {
		t.Fatal("it is checked before the session's end is known")
	}
	a.Ended(End{Outcome: session.Outcome{Why: hook.EndCrashed}, Left: true}, later, 0)
	if !a.BeginCheck() {
		t.Fatal("it is not checked")
	}
	a.CheckEnded()
	if a.life.is != Recovering {
		t.Errorf("what is left is not dealt with: %v", a.life.is)
	}
}

// TestASessionWhoseWorkWasJudgedHasNotFailed: it is released when the verdict is there
// and no hook of its waits for it, with more in the queue and nothing acknowledged by
// itself.
func TestASessionWhoseWorkWasJudgedHasNotFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(a *Agent, now time.Time)
		want    status.State
	}{
		"no check":               {func(*Agent, time.Time) {}, status.BackingOff},
		"it has its verdict":     {func(a *Agent, now time.Time) { a.ToCheck(); a.BeginCheck(); a.Judged(now); a.CheckEnded() }, status.Idle},
		"its verdict is applied": {func(a *Agent, now time.Time) { a.ToCheck(); a.BeginCheck() }, status.Checking},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := New(&config.Agent{Name: "a", MaxRestarts: 5, RestartWindow: time.Hour}, noon)
			a.Begin("", noon)
			a.Launched("s", Runs, noon)
			c.happens(a, noon)
			a.Ended(End{Outcome: session.Outcome{Why: hook.EndReleased, Bound: true}, Left: true}, later, 0)
			if got := a.Standing(later).State; got != c.want || c.want != status.BackingOff && a.past.history.failures != 0 {
				t.Errorf("it is %s, after %d failures", got, a.past.history.failures)
			}
			a.Begin("", later.Add(time.Hour))
			a.Launched("s2", Runs, later)
			a.Ended(End{Outcome: session.Outcome{Why: hook.EndReleased, Bound: true}, Left: true}, later, 0)
			if c.want == status.Idle && a.Standing(later).State != status.BackingOff {
				t.Error("the next session has done nothing, and has not failed")
			}
		})
	}
}
