package access

import (
	"net/netip"
	"sync"
	"time"

	"heartbeat/ptyrun/peer"
)

// mostTries is how many wrong tokens may come from one address in triesIn.
// mostAddresses is of how many addresses that is known; with more, all wrong tokens
// count as one address's.
const (
	mostTries     = 10
	triesIn       = time.Minute
	mostAddresses = 10_000
)

// tries counts wrong tokens by address.
type tries struct {
	mu    sync.Mutex
	began time.Time
	by    map[netip.Addr]int
}

// wrong counts a wrong token.
func (t *tries) wrong(from netip.Addr, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil || now.Sub(t.began).Abs() >= triesIn {
		t.began, t.by = now, map[netip.Addr]int{}
	}
	t.by[t.as(from)]++
}

// as is what an address counts as.
func (t *tries) as(from netip.Addr) netip.Addr {
	from = peer.Network(from).Addr()
	if _, known := t.by[from]; !known && len(t.by) >= mostAddresses {
		return netip.Addr{}
	}
	return from
}

// exhausted reports whether too many wrong tokens came from an address just now.
func (t *tries) exhausted(from netip.Addr, now time.Time) (yes bool, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	after = triesIn - now.Sub(t.began)
	return after > 0 && t.by[t.as(from)] >= mostTries, after
}
