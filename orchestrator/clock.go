package orchestrator

import "time"

// stepped is how far the wall clock must be off to count as set: two readings differ a
// little, and time servers correct slowly.
const stepped = time.Second

// heedClock has all members show what they wait for by a clock that was set, and end what
// is over by it: timers follow the monotonic clock, for which a suspended machine stood
// still.
func (s *Scheduler) heedClock() {
	s.happened(nil, func(now time.Time) {
		f := &s.fleet
		was := f.clock
		f.clock = now
		by := now.Round(0).Sub(was.Round(0)) - now.Sub(was)
		if was.IsZero() || by.Abs() < stepped {
			return
		}
		s.log.Info("the clock was set, or the machine was suspended", "by", by.Round(stepped))
		for _, m := range f.members {
			m.ClockSet(now)
			f.touch(m)
		}
	})
}
