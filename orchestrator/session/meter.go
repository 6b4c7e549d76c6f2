package session

import (
	"os"
	"time"

	"heartbeat/hook"
	"heartbeat/ptyrun"
)

// Quiet is how little the client's terminal shows when it does nothing.
// Measured with 2.1.329 over 5 seconds each: a turn with a running tool 2,200
// bytes, a turn whose stream hangs 330, an idle or interrupted session 0 (63
// once, a few seconds after the end of a turn).
const (
	quietWindow = 20 * time.Second
	quietBytes  = 200
)

// Loud is more than a spinner shows: 330 bytes by the same measurement, 1,500
// while hooks run, less than a running tool's clock.
const (
	loudWindow = 5 * time.Second
	loudBytes  = 1800
)

// quietMeter knows since when the terminal has shown next to nothing.
type quietMeter struct {
	at    time.Time
	bytes int64
}

// since returns the begin of the current window once it lies a whole window
// back, or zero. A window with output starts anew.
func (q *quietMeter) since(now time.Time, c *ptyrun.Child) time.Time {
	_, bytes := c.Activity()
	if q.at.IsZero() || bytes-q.bytes > quietBytes {
		q.at, q.bytes = now, bytes
	}
	if now.Sub(q.at) < quietWindow {
		return time.Time{}
	}
	return q.at
}

// lifeMeter knows when a session last showed a sign of life that a spinner
// does not give.
type lifeMeter struct {
	last time.Time

	windowAt   time.Time // of the terminal's output
	bytes      int64
	lookedAt   time.Time // at the transcript
	transcript int64     // its size
}

// at returns the time of the last sign of life that is known at now. Hook
// events are not among them: the record has them.
func (m *lifeMeter) at(now time.Time, c *ptyrun.Child, r *hook.Record) time.Time {
	_, bytes := c.Activity()
	switch {
	case bytes-m.bytes > loudBytes:
		m.last, m.windowAt, m.bytes = now, now, bytes
	case now.Sub(m.windowAt) >= loudWindow:
		m.windowAt, m.bytes = now, bytes
	}
	if r.Transcript != "" && now.Sub(m.lookedAt) >= time.Second {
		m.lookedAt = now
		if info, err := os.Stat(r.Transcript); err == nil && info.Size() != m.transcript {
			m.last, m.transcript = now, info.Size()
		}
	}
	return m.last
}
