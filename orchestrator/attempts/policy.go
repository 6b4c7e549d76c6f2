package attempts

import (
	"time"

	"heartbeat/orchestrator/deadline"
)

// delays are how long after an attempt that has ended the scheduler the next one is made,
// by how often in a row that was: the first time it may have been anything that killed it.
// After as many as there are it stops.
var delays = []time.Duration{0, 0, time.Minute, 5 * time.Minute, 15 * time.Minute}

// next says when something that has ended its scheduler so often in a row, at last at a time,
// may be run again; ever is false once it may not.
func next(times int, last, now time.Time) (at time.Time, ever bool) {
	if times >= len(delays) {
		return time.Time{}, false
	}
	return deadline.On(last.Add(delays[times]), now, delays[times]), true
}
