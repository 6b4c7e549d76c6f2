package memory

import (
	"errors"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
)

// TestPauseOfWhatARunHas: it has read by then which agents are paused, so it is the
// one to be asked.
func TestPauseOfWhatARunHas(t *testing.T) {
	t.Parallel()
	state, now := t.TempDir(), time.Now()
	a, b := &config.Agent{Name: "a", Dir: t.TempDir()}, &config.Agent{Name: "b", Dir: t.TempDir()}
	all := []*config.Agent{a, b}
	unlock, err := flock.TryLockFolder(a.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := PauseWithoutRun(state, all, all, now); !errors.Is(err, ErrRuns) {
		t.Errorf("while a run has one of them: %v", err)
	}
	if paused, err := PausedOf(state, all); len(paused) != 0 || err != nil {
		t.Errorf("paused: %v, %v", paused, err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := KeepPauses(state, []string{"b"}, Pauses{Since: map[string]time.Time{"b": now.Add(-time.Hour)}, By: map[string]string{"b": "a"}}); err != nil {
		t.Fatal(err)
	}
	if err := PauseWithoutRun(state, all, all, now); err != nil {
		t.Fatal(err)
	}
	paused, err := PausedOf(state, all)
	if p := paused["b"]; err != nil || !paused["a"].Since.Equal(now) || !p.Since.Equal(now.Add(-time.Hour)) || p.By != "a" {
		t.Errorf("paused: %v, %v", paused, err)
	}
	if err := ResumeWithoutRun(state, all, []*config.Agent{b}, now); err != nil {
		t.Fatal(err)
	}
	if paused, err := PausedOf(state, all); len(paused) != 1 || err != nil {
		t.Errorf("paused: %v, %v", paused, err)
	}
}
