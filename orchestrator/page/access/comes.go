package access

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"heartbeat/ptyrun/peer"
)

// coming is how a request came here.
type coming struct {
	// from is the address that failed logins are counted against.
	from netip.Addr
	// secure is true behind TLS, as a proxy says that may say so.
	secure bool
	// own is true over an open socket from a process of this user.
	own bool
}

// whose is the address that a request counts as.
func (c coming) whose() string { return peer.Network(c.from).Addr().String() }

// comes says how a request came here, or refuses one that asks for another name: a
// web page whose name was made to point here could read the answer.
func (g *Guard) comes(r *http.Request) (coming, *Refusal) {
	conn := peer.From(r.Context())
	if conn == nil {
		return coming{}, refuse(NoConnection)
	}
	rules := g.rules.Load()
	var c coming
	switch at := conn.RemoteAddr().(type) {
	case *net.TCPAddr:
		c.from = at.AddrPort().Addr().Unmap().WithZone("")
		if rules.believes(c.from) {
			c.forwarded(r)
		}
	case *net.UnixAddr:
		p, err := peer.Of(conn)
		c.own = err == nil && p.UID == os.Getuid() && slices.Contains(rules.Open, conn.LocalAddr().String()) && !forwards(r)
		if rules.believes(socket) {
			c.forwarded(r)
		}
	default:
		return coming{}, refuse(NoConnection)
	}
	if !rules.named(r.Host) {
		return coming{}, refuse(OtherHost)
	}
	return c, nil
}

// socket stands for proxies that connect to a Unix socket: the unspecified address,
// which nobody has.
var socket = netip.IPv4Unspecified()

// OverSocket is what Rules.Proxies has for proxies that connect to a Unix socket.
var OverSocket = netip.PrefixFrom(socket, 32)

func (r *Rules) believes(a netip.Addr) bool {
	return slices.ContainsFunc(r.Proxies, func(p netip.Prefix) bool { return p.Contains(a) && (p.Bits() > 0 || a != socket) })
}

// Trusts reports whether the headers of an address are believed.
func (g *Guard) Trusts(a netip.Addr) bool { return g.rules.Load().believes(a.Unmap().WithZone("")) }

// forwarded takes down what a proxy says of who asks.
func (c *coming) forwarded(r *http.Request) {
	c.secure = strings.EqualFold(last(r.Header.Values("X-Forwarded-Proto")), "https")
	if a, err := netip.ParseAddr(last(r.Header.Values("X-Forwarded-For"))); err == nil {
		c.from = a.Unmap().WithZone("")
	}
}

// last is the last element of a header: what the nearest proxy has added.
func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	all := strings.Split(values[len(values)-1], ",")
	return strings.TrimSpace(all[len(all)-1])
}

// forwards reports whether a request says that it went through a proxy: many say
// nothing, so that a socket is open only where the fleet's file says so.
func forwards(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// named reports whether a Host header names this page: by an address, as localhost, or
// by the name that the fleet's file says.
func (r *Rules) named(host string) bool {
	name, here := peer.NamesHere(host)
	return here || r.Address != nil && strings.EqualFold(name, strings.TrimSuffix(r.Address.Hostname(), "."))
}
