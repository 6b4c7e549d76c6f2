package lobby

import (
	"net/netip"
	"sync"
	"time"
)

// spared is how long a connection has for its request before another may take its
// place: who sends one at once is heard, however many connections arrive that say
// nothing.
const spared = 200 * time.Millisecond

// Floor is the room that connections have: so many in all, and each client its share.
// When it is full, a newcomer takes the place of the connection that has kept us
// waiting longest: one whose request has not arrived whole, that has sent no further
// one, or that does not read its answer. Who has proven nothing goes before who has, and
// first who was answered already: a newcomer may be about to prove it. A connection that
// is being answered keeps its place.
type Floor struct {
	Most int

	mu sync.Mutex
	in map[*Conn]netip.Prefix
	by map[netip.Prefix]int
}

// enters lets a connection in that comes from a client with a share of the room, and
// returns the connection whose place it takes, or nil: the caller closes that. false:
// there is no room now, and there may be some after a time (0: once somebody leaves).
func (f *Floor) enters(c *Conn, from netip.Prefix, share int) (ended *Conn, after time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in == nil {
		f.in, f.by = map[*Conn]netip.Prefix{}, map[netip.Prefix]int{}
	}
	if ofOne := f.by[from] >= share; ofOne || len(f.in) >= f.Most {
		ended, after = f.oldest(func(of netip.Prefix) bool { return !ofOne || of == from })
		if ended == nil {
			return nil, after, false
		}
		f.remove(ended)
	}
	f.in[c] = from
	f.by[from]++
	return ended, 0, true
}

// oldest returns the connection of some clients that has kept us waiting longest, if
// that is long enough, or else when it will be: of the lowest rank that there is.
func (f *Floor) oldest(of func(netip.Prefix) bool) (found *Conn, after time.Duration) {
	since, rank := time.Time{}, 0
	for c, from := range f.in {
		at := c.waits()
		if at.IsZero() || !of(from) {
			continue
		}
		if r := c.rank(); found == nil || r < rank || r == rank && at.Before(since) {
			found, since, rank = c, at, r
		}
	}
	if found == nil {
		return nil, 0
	}
	if after = spared - time.Since(since); after > 0 {
		return nil, after
	}
	return found, 0
}

// leaves makes room; false: another has taken the place already.
func (f *Floor) leaves(c *Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.remove(c)
}

func (f *Floor) remove(c *Conn) bool {
	from, is := f.in[c]
	if !is {
		return false
	}
	delete(f.in, c)
	if f.by[from]--; f.by[from] == 0 {
		delete(f.by, from)
	}
	return true
}
