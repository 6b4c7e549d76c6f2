package sources

import (
	"math"
	"time"
)

// span is a stretch of time with one offset from UTC, in Unix seconds; end is
// exclusive. Neighbouring spans may have the same offset.
type span struct {
	start, end, offset int64
}

// farthest is more than any zone was ever away from UTC, and more than any clock
// was ever set back.
const farthest = 26 * 60 * 60

// spanAt returns the span that u lies in.
func spanAt(loc *time.Location, u int64) span {
	t := time.Unix(u, 0).In(loc)
	_, offset := t.Zone()
	sp := span{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		sp.start = start.Unix()
	}
	if !end.IsZero() {
		sp.end = end.Unix()
	}
	if sp.end <= u {
		// Beyond its table the time package ends a year after 365 days, so on 31
		// December of a leap year the end is in the past (Go 1.26).
		sp.end = (floorDiv(u, secondsPerDay) + 1) * secondsPerDay
	}
	return sp
}

// latestLocal returns the latest local time, in local seconds, that the
// clocks of loc have shown until u: in an overlap it stands still.
func latestLocal(loc *time.Location, u int64) int64 {
	sp := spanAt(loc, u)
	latest := u + sp.offset
	for range 8 { // changes of the clock within farthest
		if sp.start < u-farthest {
			break
		}
		before := sp.start - 1
		sp = spanAt(loc, before)
		latest = max(latest, before+sp.offset)
	}
	return latest
}

// FirstReach returns the first instant at which the clocks of loc showed a time, given
// as if it were in UTC, or a later one: in a gap its end, in an overlap the first time.
func FirstReach(loc *time.Location, local time.Time) time.Time {
	return time.Unix(firstReach(loc, local.Unix()), 0).In(loc)
}

// firstReach returns the first instant at which the clocks of loc showed
// local or later: in a gap its end, in an overlap the first time.
func firstReach(loc *time.Location, local int64) int64 {
	at := local - farthest
	for range 64 {
		sp := spanAt(loc, at)
		if u := max(sp.start, local-sp.offset); u < sp.end {
			return u
		}
		at = sp.end
	}
	return local
}
