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
