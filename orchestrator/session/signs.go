package session

import (
	"time"

	"heartbeat/hook"
)

// Said is what a session has said about itself while it works on an entry.
type Said struct {
	At   time.Time `json:"at"`
	Text string    `json:"text,omitempty"`
}

// signEvery is how often a session may say something.
const signEvery = time.Second

// signs follow what the session says about itself by `heartbeat alive`.
type signs struct {
	heard    *hook.Sign // the last one that was taken
	lookedAt time.Time
	last     *Said // nil: nothing about the entry in flight
}

// look takes what was said last.
func (s *signs) look(l *hook.Live, r *hook.Record, now time.Time) {
	if s.last != nil && s.heard.Delivery != ofWork(r.Work).Delivery {
		s.last = nil
	}
	if now.Sub(s.lookedAt) < signEvery {
		return
	}
	s.lookedAt = now
	// What was said of an entry that is done by now is told once.
	if sign := l.Sign(); sign != s.heard {
		s.heard, s.last = sign, &Said{sign.At, sign.Text}
	}
}

func (s *signs) at() time.Time {
	if s.last == nil {
		return time.Time{}
	}
	return s.last.At
}
