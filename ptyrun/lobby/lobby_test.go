package lobby

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/ptyrun/peer"
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
	closed atomic.Bool
}

func (c *stranger) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1))
}

func (c *stranger) Close() error { c.closed.Store(true); return nil }

// read is a connection whose server waits for its next request.
func read(conn net.Conn) *Conn {
	c := newConn(conn)
	c.heard()
	c.reading.Store(true)
	return c
}

// TestOneClientClosesOutNobody: one that opens connections without end gets its share,
// waits for more, and loses the rest; others are heard at once. Who comes from this
// machine, as a proxy does, is not one client.
func TestOneClientClosesOutNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &street{make(chan net.Conn), make(chan struct{})}
		b := Open(s, Room{Served: 10, OfOne: 4, Waiting: 10, WaitingOfOne: 2})
		var heard []net.Conn
		go func() {
			for {
				c, err := b.Accept()
				if err != nil {
					return
				}
				c.(*Conn).Answering(true) // it has sent its request
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
				if c.closed.Load() {
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
		if synctest.Wait(); len(heard) != 9 || ClientOf(heard[8].RemoteAddr()) != ClientOf(flood[0].RemoteAddr()) {
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
		if got := ClientOf((&stranger{from: at}).RemoteAddr()).String(); got != want {
			t.Errorf("%s is of %s, want %s", at, got, want)
		}
	}
	if got := ClientOf(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("a socket's client is %s", got)
	}
}

// TestWhoSendsNothingMakesRoom: of connections that send no request, the one that has
// kept us waiting longest makes room, after a moment in which it may send one; one that
// is being answered stays, and so does one that has just come.
func TestWhoSendsNothingMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := Floor{Most: 3}
		enters := func(from string, share int) (in, ended *Conn, ok bool) {
			in = read(&stranger{from: from})
			ended, _, ok = f.enters(in, ClientOf(in.RemoteAddr()), share)
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

// TestWhoWaitsIsLetInLater: a newcomer that finds all being answered is let in once one of
// them keeps us waiting, also if nobody comes or leaves meanwhile.
func TestWhoWaitsIsLetInLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &street{make(chan net.Conn), make(chan struct{})}
		b := Open(s, Room{Served: 1, OfOne: 1, Waiting: 1, WaitingOfOne: 1})
		first := &stranger{from: "127.0.0.1"}
		s.come <- first
		in, err := b.Accept()
		if err != nil {
			t.Fatal(err)
		}
		in.(*Conn).Answering(true)
		s.come <- &stranger{from: "127.0.0.1"}
		time.Sleep(time.Minute)
		if synctest.Wait(); first.closed.Load() {
			t.Fatal("one that is being answered has made room")
		}
		in.(*Conn).Answering(false)
		in.(*Conn).reading.Store(true)
		_, err = b.Accept()
		if synctest.Wait(); err != nil || !first.closed.Load() {
			t.Errorf("%v, %v", err, first.closed.Load())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhoMakesRoom is who goes when the floor is full: each way to keep us waiting, and who
// has proven that they may be served last.
func TestWhoMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		there, away := net.Pipe()
		defer away.Close()
		proven, slow, heard, drips, later := read(&stranger{}), read(there), read(&stranger{}), read(&stranger{}), read(&stranger{})
		proven.Proves()
		answered := read(&stranger{})
		f := Floor{Most: 6}
		for _, c := range []*Conn{proven, slow, heard, drips, later, answered} {
			if _, _, ok := f.enters(c, netip.Prefix{}, f.Most); !ok {
				t.Fatal("there is room")
			}
		}
		slow.Answering(true)
		time.Sleep(spared)
		go func() { _, _ = slow.Write([]byte("what nobody reads")) }()
		time.Sleep(time.Millisecond)
		body := func(c *Conn, n int) {
			if _, err := (&arriving{ReadCloser: io.NopCloser(bytes.NewReader(make([]byte, n))), from: c}).Read(make([]byte, n)); err != nil {
				t.Error(err)
			}
		}
		body(drips, 1)
		body(heard, progress)
		time.Sleep(spared)
		later.heard()
		answered.heard()
		answered.Answering(true)
		answered.Answering(false)
		time.Sleep(spared)
		for i, want := range []*Conn{answered, drips, slow, heard, later, proven} {
			newcomer := read(&stranger{})
			newcomer.Answering(true)
			if ended, _, ok := f.enters(newcomer, netip.Prefix{}, f.Most); !ok || ended != want {
				t.Errorf("number %d to make room is %p, want %p", i, ended, want)
			}
		}
	})
}

// TestWhoAsksWithoutEndMakesRoom: a client that has the next request ready whenever it was
// answered keeps its place no longer than one that says nothing, unless it has proven that it may.
func TestWhoAsksWithoutEndMakesRoom(t *testing.T) {
	t.Parallel()
	for _, proven := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := read(&stranger{})
			if proven {
				c.Proves()
			}
			time.Sleep(spared)
			c.Answering(true)
			if !c.waits().IsZero() {
				t.Error("it makes room before it was answered")
			}
			c.Answering(false)
			if waits := time.Since(c.waits()); (waits < spared) != proven {
				t.Errorf("proven: %v, it counts as waited for since %v", proven, waits)
			}
		})
	}
}

// TestTurns: who waits for one keeps us waiting, and nobody else.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newConn(&stranger{from: "192.0.2.1"})
		c.Answering(true)
		ctx, cancel := context.WithCancel(peer.With(t.Context(), c))
		turns := make(Turns, 1)
		done, err := turns.Take(ctx)
		if err != nil || !c.waits().IsZero() {
			t.Fatalf("%v, %v", err, c.waits())
		}
		go func() {
			synctest.Wait()
			if c.waits().IsZero() {
				t.Error("who waits for a turn is being answered")
			}
			done()
		}()
		if done, err = turns.Take(ctx); err != nil || !c.waits().IsZero() {
			t.Fatalf("%v, %v", err, c.waits())
		}
		cancel()
		if _, err := turns.Take(ctx); err == nil {
			t.Error("who has gone has a turn")
		}
		done()
	})
}

// TestWhoWaitsHasTheNextAnswer: while others wait, a connection that has proven nothing is told
// that it ends, from its second answer on.
func TestWhoWaitsHasTheNextAnswer(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		for _, proven := range []bool{false, true} {
			c := newConn(&stranger{from: "192.0.2.1"})
			c.crowded = func() bool { return waits }
			if proven {
				c.Proves()
			}
			var ends []bool
			for range 2 {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(peer.With(t.Context(), c), http.MethodGet, "/", http.NoBody)
				noticing(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
				c.Answering(false)
				ends = append(ends, w.Header().Get("Connection") == "close")
			}
			if want := waits && !proven; ends[0] || ends[1] != want {
				t.Errorf("others wait: %v, proven: %v: %v", waits, proven, ends)
			}
		}
	}
}

// TestAnAnswerKeepsItsPlaceUntilItIsWritten: a handler has returned, and what it said is still on
// its way to the client (on a busy machine its turn comes later). The client's place was
// given away before the answer was sent, and it saw a closed connection.
func TestAnAnswerKeepsItsPlaceUntilItIsWritten(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Pointer[Conn]
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Store(Of(r.Context()))
	})}
	Attend(server)
	idle, written := server.ConnState, make(chan bool)
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			written <- asked.Load().waits().IsZero()
		}
		idle(conn, state)
	}
	go func() { _ = server.Serve(Open(l, Room{Served: 1, OfOne: 1, Waiting: 1, WaitingOfOne: 1})) }()
	defer server.Close()
	go func() {
		if res, err := http.Get("http://" + l.Addr().String()); err == nil {
			_ = res.Body.Close()
		}
	}()
	if !<-written {
		t.Error("it makes room before its answer is written")
	}
	if !testbed.Await(testbed.Patience, func() bool { return !asked.Load().waits().IsZero() }) {
		t.Error("it keeps its place after that")
	}
}
