package doors

import (
	"net"
	"net/http"

	"heartbeat/ptyrun/peer"
)

// Browsers keep their connections open, and one for each page that shows what changes.
// They have a bound of their own, so that they do not keep webhooks out, and each
// client has a share of it, so that no stranger takes it all. Who is on this machine,
// and proxies before the page, speak for many.
const mostBrowsers, mostOfBrowser = 512, 96

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
func (c *counted) moves(to *floor, p Page) bool {
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
	ended, _, ok := to.enters(c, from, share)
	if !ok {
		c.mu.Unlock()
		return false
	}
	leave := c.leave
	c.leave, c.moved = func() { to.leaves(c) }, true
	c.mu.Unlock()
	leave()
	if ended != nil {
		_ = ended.Close()
	}
	return true
}
