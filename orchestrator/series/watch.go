package series

import (
	"math"
	"time"

	"heartbeat/hook/durable"
)

// watchName stands for the run itself among the names of agents, none of which begins
// with a dot: it has a point, with nothing in it, of each slot in which a run looked.
const watchName = ".watched"

// Watch is when a run has looked. Where none has, that nothing is known to have happened
// does not say that nothing did. Runs of versions before this was kept are known by what
// agents did alone.
type Watch struct {
	slots map[int64]bool
	// measured are the slots in which the queues' depths were kept, from the first one
	// on: versions before that was noted have left none.
	measured map[int64]bool
	first    int64
}

// ReadWatch reads when runs have looked, from a time on.
func ReadWatch(stateDir string, since, now time.Time) (Watch, error) {
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

// Unmeasured reports whether the queues' depths are not known in a time in which a run
// has looked: one that was killed takes them with it.
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

// Saw notes that somebody looked at a time, because something is known of it.
func (w Watch) Saw(at time.Time) { w.slots[slotOf(at)] = true }

// Watched is how many slots begin in a time, and in how many of them a run has looked.
func (w Watch) Watched(from, until time.Time) (watched, all int) {
	for slot := slotOf(from.Add(Slot - 1)); startOf(slot).Before(until); slot++ {
		if all++; w.slots[slot] {
			watched++
		}
	}
	return watched, all
}

// Gap is a time in which no run has looked.
type Gap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Length is how long it is.
func (g Gap) Length() time.Duration { return g.Until.Sub(g.From) }

// Gaps are the times in which no run has looked, in their order, of what is settled and
// may still be kept.
func (w Watch) Gaps(since, now time.Time) (gaps []Gap) {
	end := slotOf(Settled(now))
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

// Settled is until when all that happened is written, if a run writes it.
func Settled(now time.Time) time.Time { return startOf(slotOf(now.Add(-settled))) }

// mark notes that this run looks now. What cannot be written is tried again.
func (r *Recorder) mark(now time.Time) {
	slot := slotOf(now)
	if slot == r.marked {
		return
	}
	folder, err := durable.MakeBelow(r.stateDir, folderOf(r.stateDir))
	if err != nil {
		return // what write says
	}
	defer folder.Close()
	if add(folder, watchName, []Point{{At: now}}) == nil {
		r.marked = slot
	}
}
