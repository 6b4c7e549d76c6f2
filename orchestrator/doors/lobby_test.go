package doors

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// street is a listener that connections come to from anywhere.
type street struct {
	come   chan net.Conn
	closed chan struct{}
}

func (s *street) Accept() (net.Conn, error) {
	select {
	case c := <-s.come:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *street) Close() error   { close(s.closed); return nil }
func (s *street) Addr() net.Addr { return &net.TCPAddr{} }

// stranger is a connection from an address.
type stranger struct {
	net.Conn
	from   string
	closed bool
}

func (c *stranger) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1))
}

func (c *stranger) Close() error { c.closed = true; return nil }

// TestOneClientClosesOutNobody: one that opens connections without end gets its share,
// waits for more, and loses the rest; others are heard at once. Who comes from this
// machine, as a proxy does, is not one client.
func TestOneClientClosesOutNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &street{make(chan net.Conn), make(chan struct{})}
		b := newLobby(s, room{served: 10, ofOne: 4, waiting: 10, waitingOfOne: 2})
		var heard []net.Conn
		go func() {
			for {
				c, err := b.Accept()
				if err != nil {
					return
				}
				c.(*counted).busy.Store(true) // it has sent its request
				heard = append(heard, c)
			}
		}()
		arrive := func(from string, n, want int) (all []*stranger) {
			t.Helper()
			for range n {
				c := &stranger{from: from}
				all = append(all, c)
				s.come <- c
			}
			if synctest.Wait(); len(heard) != want {
				t.Errorf("%d of %s: %d are heard, want %d", n, from, len(heard), want)
			}
			return all
		}
		closed := func(all []*stranger) (n int) {
			for _, c := range all {
				if c.closed {
					n++
				}
			}
			return n
		}
		flood := arrive("2001:db8:1::1", 20, 4)
		if n := closed(flood); n != 14 {
			t.Errorf("%d of 20 were closed, want all but 4 that are heard and 2 that wait", n)
		}
		arrive("2001:db8:1::2", 1, 4) // the same network: one client
		arrive("2001:db8:2::1", 1, 5)
		arrive("192.0.2.1", 3, 8)
		_ = heard[0].Close()
		if synctest.Wait(); len(heard) != 9 || clientOf(heard[8].RemoteAddr()) != clientOf(flood[0].RemoteAddr()) {
			t.Errorf("of those that wait, %d are heard", len(heard)-8)
		}
		arrive("::ffff:127.0.0.1", 2, 11)
		local := arrive("127.0.0.1", 5, 11) // there is no room, whoever comes
		if n := closed(local); n != 0 {
			t.Errorf("%d of this machine were closed", n)
		}
		for _, c := range heard[1:4] {
			_ = c.Close()
		}
		if synctest.Wait(); len(heard) != 14 {
			t.Errorf("%d are heard", len(heard))
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := closed(local); n == 0 {
			t.Error("who waits is not told that nobody listens any more")
		}
	})
}

func TestClientOf(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8::7": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
		"127.3.2.1": "invalid Prefix", "::1": "invalid Prefix",
	} {
		if got := clientOf((&stranger{from: at}).RemoteAddr()).String(); got != want {
			t.Errorf("%s is of %s, want %s", at, got, want)
		}
	}
	if got := clientOf(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("a socket's client is %s", got)
	}
}

// TestWhoSendsNothingMakesRoom: of connections that send no request, the one that has
// kept us waiting longest makes room, after a moment in which it may send one; one that
// is being answered stays, and so does one that has just come.
func TestWhoSendsNothingMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := floor{most: 3}
		enters := func(from string, share int) (in, ended *counted, ok bool) {
			in = newCounted(&stranger{from: from})
			ended, _, ok = f.enters(in, clientOf(in.RemoteAddr()), share)
			return in, ended, ok
		}
		answered, _, _ := enters("127.0.0.1", 3)
		answered.busy.Store(true)
		time.Sleep(spared)
		silent, _, _ := enters("192.0.2.1", 2)
		time.Sleep(spared)
		later, _, _ := enters("192.0.2.1", 2)
		if _, ended, ok := enters("127.0.0.1", 3); !ok || ended != silent {
			t.Errorf("%p makes room, want %p", ended, silent)
		}
		if _, _, ok := enters("127.0.0.1", 3); ok {
			t.Error("who has just come has no moment for its request")
		}
		time.Sleep(spared)
		if _, ended, ok := enters("192.0.2.1", 1); !ok || ended != later {
			t.Error("who has all of its share ends another's connection")
		}
		if f.leaves(silent) || len(f.in) != 3 {
			t.Error("a place is given back twice")
		}
	})
}
