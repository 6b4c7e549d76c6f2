package peer

import (
	"net"
	"net/netip"
	"strings"
)

// NamesHere reports whether a Host header names this machine, by an address or as
// localhost, or names none, as old clients do and no browser: where only such names are
// served, a web page whose name was made to point here reads nothing. name is the header's,
// without its port and in small letters.
func NamesHere(host string) (name string, here bool) {
	name = host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return name, name == "" || net.ParseIP(name) != nil || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// Network is what one client has of the addresses: its own one or, of IPv6, a network
// of 64 bits, from which it may take any.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(a, bits).Masked()
}
