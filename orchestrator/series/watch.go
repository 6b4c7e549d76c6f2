package series

import (
	"math"
	"time"

	"heartbeat/hook/durable"
)

// watchName is used in place of an agent's name; no agent's begins with a dot. Its file has
// an empty point for each slot in which a run was there to record.
const watchName = ".watched"

// Watch knows in which slots a run was there to record. In the others, no record of an event
// does not mean that there was none. Versions before this was kept are known only by what
// agents did.
type Watch struct {
	slots map[int64]bool
	// measured are the slots in which the depths of the queues were saved. first is the
	// first of them ever: versions before it did not record them.
	measured map[int64]bool
	first    int64
}

// readWatch reads in which slots since a time a run was there to record.
func readWatch(stateDir string, since, now time.Time) (Watch, error) {
	w := Watch{map[int64]bool{}, map[int64]bool{}, math.MaxInt64}
	err := Read(stateDir, watchName, since, now, func(p Point) { w.Saw(p.At) })
	if err != nil {
		return w, err
	}
	if slot := firstSlot(stateDir, measuredName); slot > 0 {
		w.first = slot
	}
	err = Read(stateDir, measuredName, since, now, func(p Point) {
		slot := slotOf(p.At)
		w.measured[slot], w.first = true, min(w.first, slot)
	})
	return w, err
}

// Unmeasured reports whether the depths of the queues are unknown for a time in which a run
// was there: a run that is killed loses the last ones.
func (w Watch) Unmeasured(from, until time.Time) bool {
	some := false
	for slot := slotOf(from.Add(Slot - 1)); startOf(slot).Before(until); slot++ {
		if !w.slots[slot] {
			continue
		}
		if some = true; w.measured[slot] || slot < w.first {
			return false
		}
	}
	return some
}

// Saw says that a run was there at a time, because an event of then is known.
func (w Watch) Saw(at time.Time) { w.slots[slotOf(at)] = true }

// Watched returns how many slots begin in a span of time, and in how many of them a run was
// there to record.
func (w Watch) Watched(from, until time.Time) (watched, all int) {
	for slot := slotOf(from.Add(Slot - 1)); startOf(slot).Before(until); slot++ {
		if all++; w.slots[slot] {
			watched++
		}
	}
	return watched, all
}

// Gap is a time in which no run was there to record.
type Gap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Length returns how long the gap is.
func (g Gap) Length() time.Duration { return g.Until.Sub(g.From) }

// Gaps returns the settled times in which no run was there to record, as far back as points
// are kept, in the order of time.
func (w Watch) Gaps(since, now time.Time) (gaps []Gap) {
	end := slotOf(settledBy(now))
	for slot := max(slotOf(since), end-2*int64(maxPoints)); slot < end; slot++ {
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

// settledBy returns the time until which everything is written, if a run is there to write.
func settledBy(now time.Time) time.Time { return startOf(slotOf(now.Add(-settled))) }

// mark records that this run is there now. After an error it is tried again.
func (r *Recorder) mark(now time.Time) {
	slot := slotOf(now)
	if slot == r.marked {
		return
	}
	folder, err := durable.MakeBelow(r.stateDir, folderOf(r.stateDir))
	if err != nil {
		return // write reports it
	}
	defer folder.Close()
	if add(folder, watchName, []Point{{At: now}}) == nil {
		r.marked = slot
	}
}
