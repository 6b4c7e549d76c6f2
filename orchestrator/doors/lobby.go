package doors

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// room is how many connections an address has room for: served at once, in all and
// from one client, and waiting for that. Who is on this machine, as a proxy is, counts
// as nobody in particular, and has all of it.
type room struct{ served, ofOne, waiting, waitingOfOne int }

// lobby is a listener that lets in as many clients as there is room for. The others
// wait, so that one client's connections do not close out the rest: whoever has waited
// longest and has not all that one client may have is next. Further connections of a
// client that waits too often are closed; while the lobby is full of different ones,
// the system's queue holds the rest.
type lobby struct {
	net.Listener
	room room
	in   chan accepted
	once sync.Once
	end  chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	closed  bool
	served  int
	guests  map[netip.Prefix]*guest
	line    []waiting // in the order of their arrival
}

// guest is what one client has of the room.
type guest struct{ served, waiting int }

type waiting struct {
	net.Conn
	from netip.Prefix
}

// accepted is what Accept returns next.
type accepted struct {
	conn net.Conn
	err  error
}

func newLobby(l net.Listener, r room) *lobby {
	b := &lobby{Listener: l, room: r, in: make(chan accepted), end: make(chan struct{}), guests: map[netip.Prefix]*guest{}}
	b.changed = sync.NewCond(&b.mu)
	go b.receive()
	return b
}

// Accept returns the next connection that there is room for.
func (b *lobby) Accept() (net.Conn, error) {
	select {
	case a := <-b.in:
		return a.conn, a.err
	case <-b.end:
		return nil, net.ErrClosed
	}
}

// receive takes what arrives until the listener is closed.
func (b *lobby) receive() {
	for b.hasSpace() {
		conn, err := b.Listener.Accept()
		if err != nil {
			if !b.pass(accepted{err: err}) {
				return
			}
			continue
		}
		b.arrives(waiting{conn, clientOf(conn.RemoteAddr())})
	}
}

// pass hands something to Accept; false: it is not wanted any more.
func (b *lobby) pass(a accepted) bool {
	select {
	case b.in <- a:
		return true
	case <-b.end:
		return false
	}
}

// hasSpace waits until one more may wait; false: the lobby is closed.
func (b *lobby) hasSpace() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && len(b.line) >= b.room.waiting {
		b.changed.Wait()
	}
	return !b.closed
}

// clientOf is who a connection comes from: an address, or the network that one IPv6
// client has; the zero value for this machine.
func clientOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.IsLoopback() {
		return netip.Prefix{}
	}
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(ip, bits).Masked()
}

// arrives lets a connection in, has it wait, or closes it.
func (b *lobby) arrives(w waiting) {
	b.mu.Lock()
	g := b.guests[w.from]
	if g == nil {
		g = &guest{}
		b.guests[w.from] = g
	}
	if b.closed || w.from.IsValid() && g.waiting >= b.room.waitingOfOne {
		b.mu.Unlock()
		_ = w.Close()
		return
	}
	g.waiting++
	b.line = append(b.line, w)
	b.mu.Unlock()
	b.admit()
}

// admit lets in who is next, as long as there is room.
func (b *lobby) admit() {
	for {
		w, ok := b.next()
		if !ok {
			return
		}
		in := &counted{Conn: w.Conn, leave: func() { b.leaves(w.from) }}
		if !b.pass(accepted{conn: in}) {
			_ = in.Close()
			return
		}
	}
}

// next takes the next one out of the line.
func (b *lobby) next() (waiting, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.served >= b.room.served {
		return waiting{}, false
	}
	i := slices.IndexFunc(b.line, func(w waiting) bool { return !w.from.IsValid() || b.guests[w.from].served < b.room.ofOne })
	if i < 0 {
		return waiting{}, false
	}
	w := b.line[i]
	b.line = slices.Delete(b.line, i, i+1)
	g := b.guests[w.from]
	g.waiting--
	g.served++
	b.served++
	b.changed.Broadcast()
	return w, true
}

// leaves makes room.
func (b *lobby) leaves(from netip.Prefix) {
	b.mu.Lock()
	g := b.guests[from]
	g.served--
	b.served--
	if *g == (guest{}) {
		delete(b.guests, from)
	}
	b.mu.Unlock()
	b.admit()
}

// Close closes the listener, and what waits.
func (b *lobby) Close() error {
	b.once.Do(func() { close(b.end) })
	b.mu.Lock()
	b.closed = true
	line := b.line
	b.line = nil
	b.changed.Broadcast()
	b.mu.Unlock()
	for _, w := range line {
		_ = w.Close()
	}
	return b.Listener.Close()
}
