package session

import (
	"log/slog"
	"time"
)

// complainEvery is how often what goes wrong again and again is logged.
const complainEvery = time.Minute

// complaints log what goes wrong at every look, and say how often it did.
type complaints struct {
	log *slog.Logger
	all map[string]*complaint // by what was tried
}

type complaint struct {
	why   string
	said  time.Time
	since int // how often it went wrong since it was said
}

// about logs that something could not be done, unless it has lately for the
// same reason.
func (c *complaints) about(what string, err error, now time.Time) {
	if c.all == nil {
		c.all = map[string]*complaint{}
	}
	m := c.all[what]
	if m == nil {
		m = &complaint{}
		c.all[what] = m
	}
	if err.Error() == m.why && now.Sub(m.said) < complainEvery {
		m.since++
		return
	}
	log := c.log
	if m.since > 0 {
		log = log.With("also", m.since)
	}
	log.Warn(what, "err", err)
	m.why, m.said, m.since = err.Error(), now, 0
}
