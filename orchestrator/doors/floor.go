package doors

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heartbeat/ptyrun/peer"
)

// spared is how long a connection has for its request before another may take its
// place: who sends one at once is heard, however many connections arrive that say
// nothing.
const spared = 50 * time.Millisecond

// mostUnread is how much is read of a request that was answered without being read whole.
const mostUnread = 256 << 10

// floor is the room that connections have: so many in all, and each client its share.
// When it is full, a newcomer takes the place of the connection that has kept us
// waiting longest: one whose request has not arrived whole, or that has sent no further
// one. A connection that is being answered keeps its place.
type floor struct {
	most int

	mu sync.Mutex
	in map[*counted]netip.Prefix
	by map[netip.Prefix]int
}

// enters lets a connection in that comes from a client with a share of the room, and
// returns the connection whose place it takes, or nil: the caller closes that. false:
// there is no room now, and there may be some after a time (0: once somebody leaves).
func (f *floor) enters(c *counted, from netip.Prefix, share int) (ended *counted, after time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in == nil {
		f.in, f.by = map[*counted]netip.Prefix{}, map[netip.Prefix]int{}
	}
	if ofOne := f.by[from] >= share; ofOne || len(f.in) >= f.most {
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
// that is long enough, or else when it will be.
func (f *floor) oldest(of func(netip.Prefix) bool) (found *counted, after time.Duration) {
	since := time.Time{}
	for c, from := range f.in {
		at := c.waits()
		if !at.IsZero() && of(from) && (found == nil || at.Before(since)) {
			found, since = c, at
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
func (f *floor) leaves(c *counted) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.remove(c)
}

func (f *floor) remove(c *counted) bool {
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

// counted is a connection that leaves its floor when it is closed.
type counted struct {
	net.Conn

	// since is from when on it has kept us waiting for a request, in nanoseconds; busy is
	// true while it does not: it is being answered.
	since atomic.Int64
	busy  atomic.Bool

	mu     sync.Mutex
	leave  func()
	moved  bool // it is in the crowd
	closed bool
}

func newCounted(conn net.Conn) *counted {
	c := &counted{Conn: conn, leave: func() {}}
	c.since.Store(time.Now().UnixNano())
	return c
}

// waits says since when we have waited for its client; the zero value: we do not.
func (c *counted) waits() time.Time {
	if c.busy.Load() {
		return time.Time{}
	}
	return time.Unix(0, c.since.Load())
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.mu.Lock()
	leave := c.leave
	if c.closed {
		leave = func() {}
	}
	c.closed = true
	c.mu.Unlock()
	defer leave()
	return c.Conn.Close()
}

// SyscallConn implements syscall.Conn: who is at the other end is asked for by it.
func (c *counted) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// noticing tells connections when their request is being answered. While the rest of a
// request is being read, its client keeps us waiting, and has since the request before.
func noticing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := peer.From(r.Context()).(*counted)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		c.busy.Store(true)
		defer func() {
			c.since.Store(time.Now().UnixNano())
			c.busy.Store(false)
		}()
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = arriving{r.Body, c}
			// Who is still sending what was answered without being read would see a closed
			// connection in place of the answer, which is sent after this.
			defer func(body io.Reader) { _, _ = io.CopyN(io.Discard, body, mostUnread) }(r.Body)
		}
		next.ServeHTTP(w, r)
	})
}

// arriving is a body on its way.
type arriving struct {
	io.ReadCloser
	from *counted
}

func (a arriving) Read(b []byte) (int, error) {
	a.from.busy.Store(false)
	defer a.from.busy.Store(true)
	return a.ReadCloser.Read(b)
}
