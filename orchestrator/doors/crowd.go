package doors

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"

	"heartbeat/ptyrun/peer"
)

// Browsers keep their connections open, and one for each page that shows what changes.
// They have a bound of their own, so that they do not keep webhooks out, and each
// client has a share of it, so that no stranger takes it all. Who is on this machine,
// and proxies before the page, speak for many.
const mostBrowsers, mostOfBrowser = 512, 96

// crowd are the connections of browsers, of all addresses together.
type crowd struct {
	mu  sync.Mutex
	all int
	by  map[netip.Prefix]int
}

// enters counts a connection in, if there is room.
func (c *crowd) enters(from netip.Prefix, share int) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= mostBrowsers || c.by[from] >= share {
		return nil, false
	}
	if c.by == nil {
		c.by = map[netip.Prefix]int{}
	}
	c.all++
	c.by[from]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		if c.by[from]--; c.by[from] == 0 {
			delete(c.by, from)
		}
	}, true
}

// counted is a connection that leaves its room when it is closed.
type counted struct {
	net.Conn

	mu     sync.Mutex
	leave  func()
	moved  bool // it is in the crowd
	closed bool
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

// page answers for the page, on a connection that has moved to the browsers.
func (d *Doors) page(w http.ResponseWriter, r *http.Request) {
	conn, ok := peer.From(r.Context()).(*counted)
	if !ok || !conn.moves(&d.crowd, d.opt.Page) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "30")
		refuse(w, http.StatusServiceUnavailable, "too many browsers are connected")
		return
	}
	d.opt.Page.ServeHTTP(w, r)
}

// moves has a connection count as a browser's from now on, and reports whether there
// is room.
func (c *counted) moves(to *crowd, p Page) bool {
	from, share := clientOf(c.RemoteAddr()), mostOfBrowser
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !from.IsValid() || ok && p.Trusts(tcp.AddrPort().Addr()) {
		share = mostBrowsers
	}
	c.mu.Lock()
	if c.moved || c.closed {
		c.mu.Unlock()
		return c.moved
	}
	enter, ok := to.enters(from, share)
	if !ok {
		c.mu.Unlock()
		return false
	}
	leave := c.leave
	c.leave, c.moved = enter, true
	c.mu.Unlock()
	leave()
	return true
}
