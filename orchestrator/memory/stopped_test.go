package memory

import (
	"errors"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
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
	kept := storetest.New(t, state)
	pause := func() error {
		return kept.Write(t.Context(), func(c *store.Change) error { return PauseWithoutRun(c, state, all, all, Paused{Since: now}) })
	}
	if err := pause(); !errors.Is(err, ErrRuns) {
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
	if err := pause(); err != nil {
		t.Fatal(err)
	}
	paused, err := PausedOf(state, all)
	if p := paused["b"]; err != nil || !paused["a"].Since.Equal(now) || !p.Since.Equal(now.Add(-time.Hour)) || p.By != "a" {
		t.Errorf("paused: %v, %v", paused, err)
	}
	if err := kept.Write(t.Context(), func(c *store.Change) error { return ResumeWithoutRun(c, state, all, []*config.Agent{b}, now) }); err != nil {
		t.Fatal(err)
	}
	if paused, err := PausedOf(state, all); len(paused) != 1 || err != nil {
		t.Errorf("paused: %v, %v", paused, err)
	}
}

// TestAPauseAndTheClock: what is left of a pause is never longer than it was to take,
// and one that is over is none.
func TestAPauseAndTheClock(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var kept Pauses
	kept.Set("a", Paused{Since: begin, Until: begin.Add(10 * time.Minute)})
	kept.Set("b", Paused{Since: begin})
	for after, want := range map[time.Duration]time.Duration{
		0: 10 * time.Minute, 4 * time.Minute: 6 * time.Minute, 10 * time.Minute: 0, time.Hour: 0,
		-time.Hour: 10 * time.Minute, -24 * 365 * time.Hour: 10 * time.Minute,
	} {
		now := begin.Add(after)
		if p := kept.Of("a", now); (want == 0) != p.Since.IsZero() || want > 0 && !p.Until.Equal(now.Add(want)) {
			t.Errorf("after %v: %+v, want another %v", after, p, want)
		}
		if p := kept.Of("b", now); p.Since.IsZero() || !p.Until.IsZero() {
			t.Errorf("without an end, after %v: %+v", after, p)
		}
	}
}
