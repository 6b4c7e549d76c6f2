package series

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
)

// TestRowsOfAPast: all of the time, also where nothing happened, and whether a run looked.
func TestRowsOfAPast(t *testing.T) {
	t.Parallel()
	s, _ := written(t, 6) // noon to 13:00
	p := look(t, s, []string{"a"}, noon.Add(-2*time.Hour), noon.Add(2*time.Hour+3*time.Minute), Auto)
	if p.Every != Hour || len(p.Points) != 1 || p.Points[0].Done != 6 {
		t.Fatal(p)
	}
	rows := p.Rows(100)
	if len(rows) != 5 || !rows[0].At.Equal(noon.Add(-2*time.Hour)) || rows[1].Done != 0 || rows[2].Done != 6 || rows[2].Watched != 6 || rows[3].Watched != 0 || rows[3].Slots != 6 || rows[3].Running || !rows[4].Running {
		t.Errorf("%+v", rows)
	}
	if last := p.Rows(3); len(last) != 3 || last[0].Done != 6 {
		t.Errorf("the last two: %+v", last)
	}
	// The row that has just begun is about what there is of it.
	p.Now = noon.Add(2*time.Hour + 25*time.Minute)
	if rows := p.Rows(100); len(rows) != 5 || rows[4].Slots != 3 {
		t.Errorf("%+v", rows[len(rows)-1])
	}
	for length, want := range map[time.Duration]Every{48 * time.Hour: Hour, 49 * time.Hour: Day} {
		if got := Auto.Of(length); got != want {
			t.Errorf("%s: %s", length, got)
		}
	}
	if p := look(t, s, []string{"a"}, noon, noon.Add(time.Hour+2*time.Minute), EverySlot); len(p.Rows(100)) != 7 {
		t.Errorf("slots: %+v", p.Rows(100))
	}
}

// TestWhatHappensIsThereAtOnce: each fire and each turn is in the rows from the moment on when
// it happened, once; and the row that is not over says so.
func TestWhatHappensIsThereAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.New(t, dir)
		begun, c := time.Now(), NewCounter()
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			NewRecorder(s, slog.New(slog.DiscardHandler)).Run(ctx, func() []Depth { return []Depth{{"a", 2}} })
		}()
		for n := range int64(90) {
			count(t, s, c, journal.Event{At: time.Now(), Agent: "a", Kind: journal.Fired})
			write(t, s, func(c *store.Change) error {
				return Bill(c, usage.Record{At: time.Now(), Agent: "b", Session: "s", Number: n, Sum: usage.Sum{Turns: 1}})
			})
			for _, names := range [][]string{nil, {"a", "b"}} {
				rows := look(t, s, names, begun, time.Now(), EverySlot).Rows(1000)
				var sum Point
				for _, row := range rows {
					sum = sum.Then(row.Point)
				}
				last := rows[len(rows)-1]
				if sum.Fires != n+1 || sum.Turns != n+1 || !last.Running || last.Watched == 0 || last.Fires == 0 || len(rows) > 1 && rows[len(rows)-2].Running {
					t.Fatalf("after %d: %d fires, %d turns, %+v", n+1, sum.Fires, sum.Turns, last)
				}
				if (last.Unmeasured || last.Queued != 2) && time.Since(last.At) > time.Minute {
					t.Errorf("after %d: %+v", n+1, last)
				}
			}
			time.Sleep(47 * time.Second)
		}
		end()
		<-ended
	})
}

// TestDaysOnWhichTheClockIsSet are one row each.
func TestDaysOnWhichTheClockIsSet(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	was := time.Local
	time.Local = berlin
	defer func() { time.Local = was }()
	s := storetest.New(t, t.TempDir())
	begin := time.Date(2026, 3, 28, 0, 0, 0, 0, berlin) // the day before
	end := time.Date(2026, 3, 31, 0, 0, 0, 0, berlin)
	write(t, s, func(c *store.Change) error {
		for at := begin; at.Before(end); at = at.Add(Slot) {
			if err := Add(c, "a", Point{At: at, Done: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	var days []int64
	for _, p := range look(t, s, []string{"a"}, begin, end.Add(-time.Second), Day).Points {
		if p.At.Hour() != 0 {
			t.Errorf("a day begins at %v", p.At)
		}
		days = append(days, p.Done)
	}
	if len(days) != 3 || days[0] != 144 || days[1] != 138 || days[2] != 144 {
		t.Errorf("done: %v", days)
	}
}
