package series

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestDepthsOutliveARun: what a run knew of slots that were not over is written by the
// next one; of what a killed run takes with it, it is said that nobody knows, and not that
// nothing was queued.
func TestDepthsOutliveARun(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"ended": false, "killed": true} {
		dir := t.TempDir()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(length time.Duration, queued int) {
					ctx, end := context.WithTimeout(t.Context(), length)
					defer end()
					NewRecorder(dir, slog.New(slog.DiscardHandler)).Run(ctx, func() []Depth { return []Depth{{"a", queued}} })
				}
				since := time.Now()
				run(25*time.Minute, 4)
				if killed {
					if err := os.Remove(filepath.Join(folderOf(dir), depthsName)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(20 * time.Minute)
				run(30*time.Minute, 0)
				past, err := Look(dir, []string{"a"}, since, time.Now(), EverySlot)
				if err != nil {
					t.Fatal(err)
				}
				rows := past.Rows(100)
				if len(rows) != 7 || rows[1].Queued != 4 || rows[1].Unmeasured || rows[5].Queued != 0 || rows[5].Unmeasured {
					t.Fatalf("%+v", rows)
				}
				if last := rows[2]; last.Unmeasured != killed || (last.Queued == 4) == killed || last.Watched != 1 || rows[3].Unmeasured {
					t.Errorf("its last ten minutes: %+v", last)
				}
			})
		})
	}
}

// TestAKilledRunHandsOnNoDepthsOfTheOneBefore: what a run left is the next one's alone. If
// that is killed, nobody knows how deep the queues were in the slot that both had a part of.
func TestAKilledRunHandsOnNoDepthsOfTheOneBefore(t *testing.T) {
	t.Parallel()
	dir, later := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		run := func(dir string, length time.Duration, queued int) {
			ctx, end := context.WithTimeout(t.Context(), length)
			defer end()
			NewRecorder(dir, slog.New(slog.DiscardHandler)).Run(ctx, func() []Depth { return []Depth{{"a", queued}} })
		}
		since := time.Now()
		run(dir, 25*time.Minute, 4)
		time.Sleep(time.Minute)
		go run(dir, 3*time.Minute, 9)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // as a kill leaves it
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		run(later, 30*time.Minute, 0)
		past, err := Look(later, []string{"a"}, since, time.Now(), EverySlot)
		if err != nil {
			t.Fatal(err)
		}
		if rows := past.Rows(100); rows[1].Queued != 4 || rows[1].Unmeasured || rows[2].Queued != 0 || !rows[2].Unmeasured {
			t.Errorf("%+v", rows)
		}
		// The same, where the slot is the first one that is asked about.
		w, err := readWatch(later, since.Add(20*time.Minute), time.Now())
		if err != nil || !w.Unmeasured(since.Add(20*time.Minute), since.Add(30*time.Minute)) {
			t.Errorf("from that slot on: %+v, %v", w, err)
		}
	})
}
