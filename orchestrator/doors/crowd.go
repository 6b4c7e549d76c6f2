package doors

import (
	"net"
	"net/http"

	"heartbeat/ptyrun/lobby"
)

// Browsers with a token keep their connections open, and one for each page that shows what
// changes. They have a floor of their own, so that they do not keep webhooks out, and nobody
// without a token keeps them out; each client has a share of it. Who is on this machine, and
// proxies before the page, speak for many.
const mostBrowsers, mostOfBrowser = 512, 96

// page answers for the page, on a connection that has moved to the browsers if it has
// shown a token. Who has none gets an answer and no place of theirs.
func (d *Doors) page(w http.ResponseWriter, r *http.Request) {
	conn := lobby.Of(r.Context())
	if conn == nil || d.opt.Page.Knows(r) && !d.joins(conn) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "30")
		refuse(w, http.StatusServiceUnavailable, "too many browsers are connected")
		return
	}
	d.opt.Page.ServeHTTP(w, r)
}

// joins has a connection count as a browser's from now on, and reports whether there is
// room.
func (d *Doors) joins(conn *lobby.Conn) bool {
	from, share := lobby.ClientOf(conn.RemoteAddr()), mostOfBrowser
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !from.IsValid() || ok && d.opt.Page.Trusts(tcp.AddrPort().Addr()) {
		share = mostBrowsers
	}
	conn.Proves()
	return conn.Moves(&d.crowd, from, share)
}
