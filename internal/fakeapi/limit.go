package fakeapi

import (
	"net/http"
	"strconv"
	"time"
)

// Limit is a usage limit of an account, in one window: from Falls until Resets all
// requests are refused. Before, answers tell how much of it is used, and from then on
// that a new window has begun.
type Limit struct {
	Weekly        bool // of seven days instead of five hours
	Falls, Resets time.Time
	Used          float64 // until it falls; 1 is all of it
}

// Limit sets the limit of the account that a key or a token belongs to.
func (s *Server) Limit(credential string, l Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[credential] = l
}

// headers are those of an answer at a time, as the service has them for a
// subscription; refused is true for a request that is not let through.
func (l Limit) headers(now time.Time) (h http.Header, refused bool) {
	if l.Resets.IsZero() {
		return nil, false
	}
	claim, short, length := "five_hour", "5h", 5*time.Hour
	if l.Weekly {
		claim, short, length = "seven_day", "7d", 7*24*time.Hour
	}
	status, used, resets := "allowed", l.Used, l.Resets
	switch {
	case !now.Before(l.Resets):
		used, resets = 0.01, l.Resets.Add(length)
	case !l.Falls.IsZero() && !now.Before(l.Falls):
		status, used, refused = "rejected", 1, true
	}
	at := strconv.FormatInt(resets.Unix(), 10)
	h = http.Header{}
	for name, value := range map[string]string{
		"Status": status, "Reset": at, "Representative-Claim": claim,
		short + "-Status": status, short + "-Utilization": strconv.FormatFloat(used, 'f', -1, 64), short + "-Reset": at,
	} {
		h.Set("Anthropic-Ratelimit-Unified-"+name, value)
	}
	return h, refused
}
