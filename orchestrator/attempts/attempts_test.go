package attempts

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/orchestrator/state"
)

// killed begins work in a Book that never hears of its end, as when the scheduler is killed.
func killed(t *testing.T, dir string, all ...Work) {
	t.Helper()
	b := Of(dir)
	for _, w := range all {
		end, err := b.begin(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		var left Note
		err = state.Load(b.path(w), &left)
		end(false) // the system drops the lock of a process that is killed; the note stays
		if err := errors.Join(err, state.Save(b.path(w), left)); err != nil {
			t.Fatal(err)
		}
	}
}

func run(ctx context.Context, dir string, w Work) error {
	_, err := Run(ctx, Of(dir), w, func() (int, error) { return 0, ctx.Err() })
	return err
}

func TestNext(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for times, tt := range []struct {
		ago, wait time.Duration
		ever      bool
	}{
		{0, 0, true},
		{0, 0, true},
		{10 * time.Second, 50 * time.Second, true},
		{-time.Hour, 5 * time.Minute, true}, // the clock was set back
		{time.Hour, -45 * time.Minute, true},
		{time.Hour, 0, false},
		{time.Hour, 0, false},
	} {
		at, ever := next(times, now.Add(-tt.ago), now)
		if ever != tt.ever || ever && !at.Equal(now.Add(tt.wait)) {
			t.Errorf("%d times: %v, %v", times, at.Sub(now), ever)
		}
	}
}

// TestWorkThatEndsItsScheduler: it is tried again later each time, and in the end not any
// more; what ran beside it is cleared by its next run.
func TestWorkThatEndsItsScheduler(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		bad, good := Work{Kind: Check, Agent: "bad", Definition: "kill"}, Work{Kind: Poll, Agent: "good", Name: "p"}
		killed(t, dir, bad, good)
		if all, err := All(dir); err != nil || len(all) != 2 || all[0].Times != 1 {
			t.Fatal(all, err)
		}
		if err := run(t.Context(), dir, good); err != nil {
			t.Error(err)
		}
		waits := []time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute}
		for _, wait := range waits {
			if wait > 0 {
				held, is := errors.AsType[*HeldError](run(t.Context(), dir, bad))
				if !is || !held.Until.Equal(time.Now().Add(wait)) {
					t.Fatalf("after %v: %v", wait, held)
				}
				time.Sleep(wait)
			}
			killed(t, dir, bad)
		}
		time.Sleep(24 * time.Hour)
		held, is := errors.AsType[*HeldError](run(t.Context(), dir, bad))
		if !is || !held.Until.IsZero() || held.Times != 5 {
			t.Error(held)
		}
		other := bad
		other.Definition = "another program"
		if err := run(t.Context(), dir, other); err != nil {
			t.Error("another definition: ", err)
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		byHand := bad
		byHand.ByHand = true
		if err := run(stopped, dir, byHand); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, is := errors.AsType[*HeldError](run(t.Context(), dir, bad)); !is {
			t.Error("a run that we ended has cleared it")
		}
		if err := Forget(dir, "bad"); err != nil {
			t.Error(err)
		}
		if err := run(t.Context(), dir, bad); err != nil {
			t.Error("after resume: ", err)
		}
		if all, err := All(dir); err != nil || len(all) != 0 {
			t.Error(all, err)
		}
	})
}

// TestOneUnderSuspicionRunsAlone: the one that kills the scheduler takes no other along.
func TestOneUnderSuspicionRunsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := Work{Kind: Gate, Name: "one"}, Work{Kind: Gate, Name: "two"}
	killed(t, dir, one, two)
	b := Of(dir)
	end, err := b.begin(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.begin(soon, two); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("it runs beside the other: ", err)
	}
	end(false)
	if err := run(t.Context(), dir, two); err != nil {
		t.Error(err)
	}
}

// TestANoteFromAClockThatWasAhead: its work waits for its delay, counted from when that was
// first seen, and not for years: each look put it off by another delay.
func TestANoteFromAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := Work{Kind: Check, Agent: "a"}
		if err := state.Save(Of(dir).path(w), Note{w, 2, time.Now().Add(7 * 365 * 24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		for passed := time.Duration(0); passed < delays[2]; passed += 10 * time.Second {
			if held, is := errors.AsType[*HeldError](run(t.Context(), dir, w)); !is || time.Until(held.Until) != delays[2]-passed {
				t.Fatalf("after %v: %v", passed, held)
			}
			time.Sleep(10 * time.Second)
		}
		if err := run(t.Context(), dir, w); err != nil {
			t.Error(err)
		}
	})
}

// TestADiskThatTakesNoNote stops nothing.
func TestADiskThatTakesNoNote(t *testing.T) {
	t.Parallel()
	for _, b := range []*Book{nil, Of("/dev/null"), Of(filepath.Join(t.TempDir(), "new"))} {
		ran, err := Run(t.Context(), b, Work{Kind: Notify}, func() (bool, error) { return true, nil })
		if err != nil || !ran {
			t.Error(ran, err)
		}
	}
}
