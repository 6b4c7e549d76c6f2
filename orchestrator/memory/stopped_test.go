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
	a, b := &config.Agent{Name: "a", Dir: t.TempDir()}, &config.Agent{Name: "b", Dir: t.TempDir()}
	unlock, err := flock.TryLockFolder(b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := NotRun([]*config.Agent{a, b}); !errors.Is(err, ErrRuns) {
		t.Errorf("while a run has one of them: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := NotRun([]*config.Agent{a, b}); err != nil {
		t.Errorf("when no run has one: %v", err)
	}
}

// TestAPauseIsKeptByTheAgent, whatever its name is by then, until it is resumed; what is kept of
// one that is forgotten is not that of the next with its key.
func TestAPauseIsKeptByTheAgent(t *testing.T) {
	t.Parallel()
	kept := storetest.New(t, t.TempDir())
	a, b := &config.Agent{Name: "a", Dir: "/1"}, &config.Agent{Name: "b", Dir: "/2"}
	if _, err := note(t, kept, a, b); err != nil {
		t.Fatal(err)
	}
	act := func(act func(c *store.Change) error) {
		t.Helper()
		if err := kept.Write(t.Context(), act); err != nil {
			t.Fatal(err)
		}
	}
	a.Name = "renamed"
	is := func(want int) map[string]Paused {
		t.Helper()
		paused, err := PausedOf(kept.Dir(), []*config.Agent{a, b})
		if err != nil || len(paused) != want || paused == nil {
			t.Errorf("paused: %v, %v; want %d", paused, err, want)
		}
		return paused
	}
	is(0)
	act(func(c *store.Change) error {
		return errors.Join(Pause(c, "b", Paused{Since: now.Add(-time.Hour), By: "a"}), Pause(c, "a", Paused{Since: now}), Pause(c, "b", Paused{Since: now}))
	})
	if p := is(2); !p["renamed"].Since.Equal(now) || !p["b"].Since.Equal(now.Add(-time.Hour)) || p["b"].By != "a" {
		t.Errorf("paused: %+v", p)
	}
	act(func(c *store.Change) error { return KeepPause(c, "b", Paused{}) })
	is(1)
	act(func(c *store.Change) error { return forget(c, kept.Dir(), "a") })
	is(0)
	if paused, err := PausedOf(t.TempDir(), []*config.Agent{a, b}); paused != nil || err != nil {
		t.Errorf("of a fleet without a store: %v, %v", paused, err)
	}
}

// TestAPauseAndTheClock: what is left of a pause is never longer than it was to take,
// and one that is over is none.
func TestAPauseAndTheClock(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	kept := Pauses{"a": {Since: begin, Until: begin.Add(10 * time.Minute)}, "b": {Since: begin}}
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
