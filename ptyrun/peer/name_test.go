package peer

import (
	"net/netip"
	"testing"
)

func TestNamesHere(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"": true, "localhost": true, "LOCALHOST:8321": true, "a.localhost.": true, "127.0.0.1:8321": true, "192.0.2.7": true, "[::1]:8321": true, "[::1]": true, "localhost.": true,
		"evil.example": false, "evil.example:8321": false, "localhost.evil.example": false, "notlocalhost": false, "1.2.3": false,
	} {
		if _, here := NamesHere(host); here != want {
			t.Errorf("%q: %v, want %v", host, here, want)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8::7": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := Network(netip.MustParseAddr(at)).String(); got != want {
			t.Errorf("%s is of %s, want %s", at, got, want)
		}
	}
}
