package lobby

import (
	"net/netip"
	"testing"
)

func TestAFloorIsBounded(t *testing.T) {
	t.Parallel()
	const most, share = 12, 5
	c := Floor{Most: most}
	one := netip.MustParsePrefix("192.0.2.1/32")
	enters := func(from netip.Prefix, share int) (*Conn, bool) {
		conn := newConn(&stranger{})
		conn.busy.Store(true)
		ended, _, ok := c.enters(conn, from, share)
		if ended != nil {
			t.Error("one that is being answered makes room")
		}
		return conn, ok
	}
	var in []*Conn
	for range share {
		conn, ok := enters(one, share)
		if !ok {
			t.Fatal("there is room")
		}
		in = append(in, conn)
	}
	if _, ok := enters(one, share); ok {
		t.Error("one client has more than its share")
	}
	for range most - share {
		if _, ok := enters(netip.Prefix{}, most); !ok {
			t.Fatal("there is room")
		}
	}
	if _, ok := enters(netip.Prefix{}, most); ok {
		t.Error("there are too many")
	}
	for _, conn := range in {
		c.leaves(conn)
	}
	if _, ok := enters(one, share); !ok || len(c.by) != 2 {
		t.Error("who has left takes room")
	}
}
