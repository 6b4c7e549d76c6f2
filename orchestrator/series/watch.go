package series

import (
	"time"

	"heartbeat/orchestrator/store"
)

// Watch knows in which slots a run was there. In the others, no record of an event does not
// mean that there was none.
type Watch struct {
	slots map[int64]bool
	// measured are the slots in which it was looked how much the queues hold.
	measured map[int64]bool
}

// watched is in which slots of a span of time a run was there.
const watched = `SELECT at, looked FROM series WHERE agent = '' AND at >= $1 AND at <= $2`

func watch(v *store.View, since, now time.Time) (Watch, error) {
	w := Watch{map[int64]bool{}, map[int64]bool{}}
	err := v.Each(watched, []any{store.Millis(startOf(slotOf(since))), store.Millis(now)}, func(scan store.Scan) error {
		var at int64
		var looked bool
		if err := scan(&at, &looked); err != nil {
			return err
		}
		slot := slotOf(store.Time(at))
		if w.slots[slot] = true; looked {
			w.measured[slot] = true
		}
		return nil
	})
	return w, err
}

// Unmeasured reports whether nobody looked how much the queues held in a time in which a run
// was there.
func (w Watch) Unmeasured(from, until time.Time) bool {
	some := false
	for slot := slotOf(from.Add(Slot - 1)); startOf(slot).Before(until); slot++ {
		if w.measured[slot] {
			return false
		}
		some = some || w.slots[slot]
	}
	return some
}

// Saw says that a run is there at a time.
func (w Watch) Saw(at time.Time) { w.slots[slotOf(at)] = true }

// Watched returns how many slots begin in a span of time, and in how many of them a run was
// there.
func (w Watch) Watched(from, until time.Time) (watched, all int) {
	for slot := slotOf(from.Add(Slot - 1)); startOf(slot).Before(until); slot++ {
		if all++; w.slots[slot] {
			watched++
		}
	}
	return watched, all
}

// Gap is a time in which no run was there.
type Gap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Length returns how long the gap is.
func (g Gap) Length() time.Duration { return g.Until.Sub(g.From) }

// settled is how long after its end a slot without a row is one in which no run was there.
const settled = 2 * time.Minute

// Gaps returns the times in which no run was there, as far back as rows are kept, in the order
// of time.
func (w Watch) Gaps(since, now time.Time) (gaps []Gap) {
	end := slotOf(now.Add(-settled))
	for slot := max(slotOf(since), end-int64(Longest/Slot)); slot < end; slot++ {
		if w.slots[slot] {
			continue
		}
		at := startOf(slot)
		if n := len(gaps) - 1; n >= 0 && gaps[n].Until.Equal(at) {
			gaps[n].Until = at.Add(Slot)
			continue
		}
		gaps = append(gaps, Gap{at, at.Add(Slot)})
	}
	return gaps
}
