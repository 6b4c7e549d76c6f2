package lobby

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is a connection that has come in by a lobby. It leaves its floor when it is closed.
type Conn struct {
	net.Conn

	// since is from when on it has kept us waiting for a request, in nanoseconds; 0: nobody has
	// read from it yet. busy is true while it is being answered, reading while somebody reads
	// from it, awaited while the rest of its request, or its turn, is waited for. writing is
	// since when it has not taken what we write; 0: nothing is being written.
	since, writing         atomic.Int64
	busy, reading, awaited atomic.Bool
	// proven: who is at the other end has shown that they may be served. answered: a request
	// of theirs was.
	proven, answered atomic.Bool

	// crowded reports whether others wait for its place.
	crowded func() bool

	mu     sync.Mutex
	leave  func()
	moved  bool // it is on another floor
	closed bool
}

func newConn(conn net.Conn) *Conn {
	return &Conn{Conn: conn, leave: func() {}, crowded: func() bool { return false }}
}

// Read implements net.Conn. Only while somebody reads does a client keep us waiting: what it has
// sent may lie there for long, on a busy machine, until its turn comes.
func (c *Conn) Read(b []byte) (int, error) {
	c.since.CompareAndSwap(0, time.Now().UnixNano())
	c.reading.Store(true)
	defer c.reading.Store(false)
	return c.Conn.Read(b)
}

// heard restarts the time in which the client keeps us waiting.
func (c *Conn) heard() { c.since.Store(time.Now().UnixNano()) }

// Answering says whether the client is being answered from now on, or keeps us waiting. It
// is waited for when it arrives. Who has proven nothing has one answer in peace: after it, they
// count as if they had kept us waiting since they came, or they would keep their place by
// asking again and again.
func (c *Conn) Answering(yes bool) {
	if !yes {
		if c.answered.Store(true); c.proven.Load() {
			c.heard()
		}
	}
	c.busy.Store(yes)
}

// waitedFor has a connection, if there is one, count as keeping us waiting until over is called.
func (c *Conn) waitedFor() (over func()) {
	if c == nil {
		return func() {}
	}
	c.awaited.Store(true)
	return func() { c.awaited.Store(false) }
}

// Proves says that who is at the other end has proven that they may be served: they make
// room for others only where all have.
func (c *Conn) Proves() { c.proven.Store(true) }

// waits says since when we have waited for its client; the zero value: we do not.
func (c *Conn) waits() time.Time {
	if at := c.writing.Load(); at != 0 {
		if c.answered.Load() && !c.proven.Load() {
			at = min(at, c.since.Load())
		}
		return time.Unix(0, at)
	}
	if c.awaited.Load() || c.reading.Load() && !c.busy.Load() {
		return time.Unix(0, c.since.Load())
	}
	return time.Time{}
}

// rank is where a connection stands among those that make room: the lowest goes first.
func (c *Conn) rank() int {
	switch {
	case c.proven.Load():
		return 2
	case c.answered.Load():
		return 0
	}
	return 1
}

// Moves has a connection stand on another floor from now on, where its client has a share
// of the room, and reports whether it does.
func (c *Conn) Moves(to *Floor, from netip.Prefix, share int) bool {
	c.mu.Lock()
	if c.moved || c.closed {
		c.mu.Unlock()
		return c.moved
	}
	ended, _, ok := to.enters(c, from, share)
	if !ok {
		c.mu.Unlock()
		return false
	}
	leave := c.leave
	c.leave, c.moved = func() { to.leaves(c) }, true
	c.mu.Unlock()
	leave()
	ended.ends()
	return true
}

// ends closes a connection whose place another one has, if there is one. Nobody waits for it:
// closing waits for whoever reads or writes there, who may be far from their turn while many
// are answered.
func (c *Conn) ends() {
	if c != nil {
		go func() { _ = c.Close() }()
	}
}

// Write implements net.Conn. A client that does not take what it is answered keeps us
// waiting.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Store(time.Now().UnixNano())
	defer c.writing.Store(0)
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *Conn) Close() error {
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
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
