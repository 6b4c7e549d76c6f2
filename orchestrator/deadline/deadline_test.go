package deadline

import (
	"fmt"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

const year = 365 * 24 * time.Hour

// TestWhateverTheClockIsSetTo: what ends in an hour is over after an hour at the latest,
// not before the first of the two clocks says so, and is never shown as further away.
func TestWhateverTheClockIsSetTo(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-30 * year, -25 * time.Hour, -time.Minute, 0, 30 * time.Minute, time.Hour, 30 * year} {
		for name, from := range map[string]func(now time.Time) time.Time{
			"of this process": func(now time.Time) time.Time { return now.Add(time.Hour) },
			"of a file":       func(now time.Time) time.Time { return On(now.Round(0).Add(time.Hour), now, 2*time.Hour) },
			"of another clock": func(now time.Time) time.Time {
				return On(now.Round(0).Add(30*year), now, time.Hour)
			},
		} {
			t.Run(fmt.Sprint(name, ", ", by), func(t *testing.T) {
				t.Parallel()
				clock := testbed.NewClock()
				at := from(clock.Now())
				clock.Set(by)
				left := time.Hour - max(0, by)
				for after, over := range map[time.Duration]bool{0: left <= 0, left - time.Minute: left <= time.Minute, left: true, time.Hour: true} {
					now := clock.Now().Add(max(0, after))
					if Over(at, now) != over {
						t.Errorf("after %v: over %v, want %v", after, !over, over)
					}
					if shown := Shown(at, now).Round(0).Sub(now.Round(0)); shown > time.Hour-max(0, after) || !over && shown <= 0 {
						t.Errorf("after %v it is shown as %v away", after, shown)
					}
				}
			})
		}
	}
}

// TestWhatHasBegun: its age is never less than nothing, and grows as time goes on.
func TestWhatHasBegun(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 0: 0, -30 * year: 0} {
		clock := testbed.NewClock()
		now := clock.Now()
		since := Since(now.Round(0).Add(-ago), now)
		clock.Set(-10 * year)
		if age := clock.Now().Sub(since); age < want || age > want+time.Minute {
			t.Errorf("%v ago: %v old, want %v", ago, age, want)
		}
	}
}

// TestNoDeadline: the zero time is none, and over.
func TestNoDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if none := (time.Time{}); !On(none, now, time.Hour).IsZero() || !Since(none, now).IsZero() || !Shown(none, now).IsZero() || !Over(none, now) {
		t.Error("the zero time is a deadline")
	}
}
