package session

import (
	"log/slog"
	"time"
)

// complainEvery is how often a repeated failure is logged.
const complainEvery = time.Minute

// complaints log failures that repeat with every look, and how often they occurred.
type complaints struct {
	log *slog.Logger
	all map[string]*complaint // by what was tried
}

type complaint struct {
	why   string
	said  time.Time
	since int // how many failures since it was logged
}

// about logs that something failed, unless it did so recently for the same reason.
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
