package testbed

import (
	"testing"
	"time"
)

// TestAClockHasTwoHands: what is set moves one of them, and what passes both.
func TestAClockHasTwoHands(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{0, time.Hour, -time.Hour, 30 * 365 * 24 * time.Hour, -30 * 365 * 24 * time.Hour} {
		c := NewClock()
		before := c.Now()
		c.Set(by)
		after := c.Now()
		if passed := after.Sub(before); passed < 0 || passed > time.Minute {
			t.Errorf("set by %v: %v passed", by, passed)
		}
		if moved := after.Round(0).Sub(before.Round(0)) - by; moved < 0 || moved > time.Minute {
			t.Errorf("set by %v: the wall clock moved by %v more", by, moved)
		}
		if off := after.Round(0).Sub(time.Now().Round(0)) - by; off.Abs() > time.Minute {
			t.Errorf("set by %v: it shows the time %v off", by, off)
		}
		if later := after.Add(time.Second); later.Sub(after) != time.Second || !later.After(after) {
			t.Errorf("set by %v: a second later is %v", by, later.Sub(after))
		}
	}
}
