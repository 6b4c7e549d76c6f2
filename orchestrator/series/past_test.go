package series

import (
	"testing"
	"time"
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
