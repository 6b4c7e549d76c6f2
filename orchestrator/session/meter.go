package session

import (
	"os"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/ptyrun"
)

// quietMeter measures since when the terminal has shown next to nothing.
type quietMeter struct {
	at    time.Time
	bytes int64
}

// since returns the beginning of the current window once that is a whole window
// ago, or zero. A window with output starts over.
func (q *quietMeter) since(now time.Time, c *ptyrun.Child) time.Time {
	_, bytes := c.Activity()
	if q.at.IsZero() || bytes-q.bytes > client.Claude.Terminal.Idle {
		q.at, q.bytes = now, bytes
	}
	if now.Sub(q.at) < client.Claude.Terminal.IdleFor {
		return time.Time{}
	}
	return q.at
}

// lifeMeter measures when a session last showed a sign of life other than a
// spinner.
type lifeMeter struct {
	last time.Time

	windowAt   time.Time // of the terminal's output
	bytes      int64
	lookedAt   time.Time // at the transcript
	transcript int64     // its size
}

// at returns the time of the last sign of life that is known at now. It does not
// include hook events: the record has them.
func (m *lifeMeter) at(now time.Time, c *ptyrun.Child, r *hook.Record) time.Time {
	_, bytes := c.Activity()
	switch {
	case bytes-m.bytes > client.Claude.Terminal.Spinner:
		m.last, m.windowAt, m.bytes = now, now, bytes
	case now.Sub(m.windowAt) >= client.Claude.Terminal.SpinnerFor:
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
