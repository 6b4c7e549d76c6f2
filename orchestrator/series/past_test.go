package series

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/usage"
	"heartbeat/orchestrator/usage/usagetest"
)

// TestRowsOfAPast: all of the time, also where nothing happened, and whether a run looked.
func TestRowsOfAPast(t *testing.T) {
	t.Parallel()
	dir, _ := written(t, 6) // noon to 13:00
	p, err := Look(dir, []string{"a"}, noon.Add(-2*time.Hour), noon.Add(2*time.Hour+3*time.Minute), Auto)
	if err != nil || p.Every != Hour || len(p.Points) != 1 || p.Points[0].Done != 6 {
		t.Fatal(p, err)
	}
	rows := p.Rows(100)
	if len(rows) != 4 || !rows[0].At.Equal(noon.Add(-2*time.Hour)) || rows[1].Done != 0 || rows[2].Done != 6 || rows[2].Watched != 6 || rows[3].Watched != 0 || rows[3].Slots != 6 {
		t.Errorf("%+v", rows)
	}
	if last := p.Rows(2); len(last) != 2 || last[0].Done != 6 {
		t.Errorf("the last two: %+v", last)
	}
	// The row that has just begun is about what is settled of it.
	p.Now = noon.Add(2*time.Hour + 25*time.Minute)
	if rows := p.Rows(100); len(rows) != 5 || rows[4].Slots != 2 {
		t.Errorf("%+v", rows[len(rows)-1])
	}
	for length, want := range map[time.Duration]Every{48 * time.Hour: Hour, 49 * time.Hour: Day} {
		if got := Auto.Of(length); got != want {
			t.Errorf("%s: %s", length, got)
		}
	}
	if p, err := Look(dir, []string{"a"}, noon, noon.Add(time.Hour+2*time.Minute), EverySlot); err != nil || len(p.Rows(100)) != 6 {
		t.Errorf("slots: %+v, %v", p.Rows(100), err)
	}
}

// TestARunKnowsWhatIsNotWrittenYet: each fire and each turn is in its rows from the moment on
// when it happened, once, whatever is written meanwhile; and the row that is not over says so.
func TestARunKnowsWhatIsNotWrittenYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := NewRecorder(dir, slog.New(slog.DiscardHandler))
		begun := time.Now()
		look := func() (sum Point, rows []Row) {
			p, err := r.Look([]string{"a", "b"}, begun, time.Now(), EverySlot)
			if err != nil {
				t.Fatal(err)
			}
			rows = p.Rows(1000)
			for _, row := range rows {
				sum = sum.Then(row.Point)
			}
			return sum, rows
		}
		if _, rows := look(); len(rows) != 0 {
			t.Errorf("before it has read the journal: %+v", rows)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx, func() []Depth { return []Depth{{"a", 2}} }) }()
		synctest.Wait()
		for n := range int64(90) {
			r.Note(journal.Event{At: time.Now(), Agent: "a", Kind: journal.Fired})
			usagetest.Add(t, dir, usage.Record{At: time.Now(), Agent: "b", Session: "s", Sum: usage.Sum{Turns: 1}})
			sum, rows := look()
			last := rows[len(rows)-1]
			if sum.Fires != n+1 || sum.Turns != n+1 || !last.Running || last.Watched == 0 || last.Fires == 0 || len(rows) > 1 && rows[len(rows)-2].Running {
				t.Fatalf("after %d: %d fires, %d turns, %+v", n+1, sum.Fires, sum.Turns, last)
			}
			if n > 2 && (last.Unmeasured || last.Queued != 2) && time.Since(last.At) > 2*time.Minute {
				t.Errorf("after %d: %+v", n+1, last)
			}
			time.Sleep(47 * time.Second)
		}
		end()
		<-ended
	})
}
