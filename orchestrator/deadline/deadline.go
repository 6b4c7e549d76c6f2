// Package deadline says when something ends by itself that is waited for: a pause, a
// parking, a back-off, a link's ten minutes. It owns what the machine's clock may do to
// that, which people, time servers and empty batteries set forward and back by years.
//
// A time of this process has two readings: the wall clock's, which people are told, and the
// monotonic clock's, which only goes on (package time). What ends by itself is over as soon
// as one of them says so. So a clock that is set back delays nothing, and a machine that was
// suspended, for which the monotonic clock stood still, is not late.
//
// A time that was read from a file or a text, or taken from the calendar, has the wall
// clock's reading only. It gets the other one once, when this process first sees it: by On,
// or by Since where it is when something began. Who keeps a deadline in a file keeps with it
// how long it was to take, so that one from another clock is never further away than that.
//
// What people name by the wall clock itself, such as the fires of a schedule, is no
// deadline: it comes when the clock shows it.
package deadline

import "time"

// On returns the moment at as one that is waited for from now on: no further away than
// longest. The zero time, which is no deadline, stays what it is.
func On(at, now time.Time, longest time.Duration) time.Time {
	if at.IsZero() {
		return at
	}
	return now.Add(min(wall(at).Sub(wall(now)), longest))
}

// Since returns the moment at as the beginning of something that goes on: not later than
// now. The zero time stays what it is.
func Since(at, now time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return now.Add(-max(0, wall(now).Sub(wall(at))))
}

// Left returns how long a deadline is away: by the clock that says it is nearer.
func Left(at, now time.Time) time.Duration {
	return min(at.Sub(now), wall(at).Sub(wall(now)))
}

// Over reports whether a deadline has passed. The zero time has.
func Over(at, now time.Time) bool { return Left(at, now) <= 0 }

// Shown returns a deadline as a wall clock shows it that may have been set since: as far
// away as it is. The zero time stays what it is.
func Shown(at, now time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return now.Add(Left(at, now))
}

func wall(t time.Time) time.Time { return t.Round(0) }
