package testbed

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Clock is a machine's clock that a test sets, forward or back, while time goes on: what
// time.Now returns is two readings, of which only the wall clock's is set. In a bubble of
// testing/synctest, whose time.Now has no other, the time that passes there is the second.
type Clock struct {
	began time.Time
	off   atomic.Int64 // by how much the wall clock is set
}

// NewClock returns a clock that shows the time.
func NewClock() *Clock { return &Clock{began: time.Now()} }

// Set sets the wall clock forward, or back.
func (c *Clock) Set(by time.Duration) { c.off.Add(int64(by)) }

// Now is what time.Now would return.
func (c *Clock) Now() time.Time {
	now := time.Now()
	return twoHands(now.Round(0).Add(time.Duration(c.off.Load())), now.Sub(c.began))
}

// twoHands makes a time of its two readings: time has no function for it. The fields are
// those of time.Time since Go 1.9; a test compares.
func twoHands(wall time.Time, passed time.Duration) time.Time {
	const hasMonotonic, secondsFrom = 1 << 63, 30
	first := time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC) // of the 33 bits of seconds
	t := wall
	fields := (*struct {
		wall uint64
		ext  int64
		zone *time.Location
	})(unsafe.Pointer(&t))
	fields.wall = hasMonotonic | uint64(wall.Unix()-first.Unix())<<secondsFrom | uint64(wall.Nanosecond())
	fields.ext = int64(passed) + 1
	return t
}
