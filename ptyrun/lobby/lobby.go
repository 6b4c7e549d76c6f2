// Package lobby bounds who is connected to a listener. Each listener that we open has one
// in front of it, so that no number of connections that say nothing, send a byte at a time,
// or do not read what they are answered, closes out who has something to say.
//
// What it gives: whoever sends a request as soon as it is connected is heard, also while
// all places are taken by connections that keep us waiting; those are closed, the one that
// has kept us waiting longest first. Who has proven that they may (Conn.Proves) is closed
// last. It does not bound what a request costs: who answers it does (see Turns).
package lobby

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"heartbeat/ptyrun/peer"
)

// Room is how many connections a listener has room for: served at once, in all and
// from one client, and waiting for that. Who is on this machine, as a proxy is, counts
// as nobody in particular, and has all of it.
type Room struct{ Served, OfOne, Waiting, WaitingOfOne int }

// Lobby is a listener that lets in as many clients as there is room for. Whoever sends
// a request is heard: a connection that sends none makes room for the next one (Floor).
// While all that are inside are being answered, the others wait, so that one client's
// connections do not close out the rest: whoever has waited longest and has not all
// that one client may have is next. Further connections of a client that waits too
// often are closed; while the lobby is full of different ones, the system's queue holds
// the rest.
type Lobby struct {
	net.Listener
	room   Room
	inside Floor
	in     chan accepted
	once   sync.Once
	end    chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	closed  bool
	waits   map[netip.Prefix]int
	line    []waiting   // in the order of their arrival
	again   *time.Timer // when a place may be free; nil: nobody waits for one
}

type waiting struct {
	net.Conn
	from netip.Prefix
}

// accepted is what Accept returns next.
type accepted struct {
	conn net.Conn
	err  error
}

// Open begins to accept what arrives at a listener. Close closes that, too.
func Open(l net.Listener, r Room) *Lobby {
	b := &Lobby{Listener: l, room: r, in: make(chan accepted), end: make(chan struct{}), waits: map[netip.Prefix]int{}, inside: Floor{Most: r.Served}}
	b.changed = sync.NewCond(&b.mu)
	go b.receive()
	return b
}

// Accept returns the next connection that there is room for: a *Conn.
func (b *Lobby) Accept() (net.Conn, error) {
	select {
	case a := <-b.in:
		return a.conn, a.err
	case <-b.end:
		return nil, net.ErrClosed
	}
}

// receive takes what arrives until the listener is closed.
func (b *Lobby) receive() {
	for b.hasSpace() {
		conn, err := b.Listener.Accept()
		if err != nil {
			if !b.pass(accepted{err: err}) || errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		b.arrives(waiting{conn, ClientOf(conn.RemoteAddr())})
	}
}

// pass hands something to Accept; false: it is not wanted any more.
func (b *Lobby) pass(a accepted) bool {
	select {
	case b.in <- a:
		return true
	case <-b.end:
		return false
	}
}

// hasSpace waits until one more may wait; false: the lobby is closed.
func (b *Lobby) hasSpace() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed && len(b.line) >= b.room.Waiting {
		b.changed.Wait()
	}
	return !b.closed
}

// ClientOf is who a connection comes from: an address, or the network that one IPv6
// client has; the zero value for this machine.
func ClientOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr()
	if ip.Unmap().IsLoopback() {
		return netip.Prefix{}
	}
	return peer.Network(ip)
}

// arrives lets a connection in, has it wait, or closes it.
func (b *Lobby) arrives(w waiting) {
	b.mu.Lock()
	if b.closed || w.from.IsValid() && b.waits[w.from] >= b.room.WaitingOfOne {
		b.mu.Unlock()
		_ = w.Close()
		return
	}
	b.waits[w.from]++
	b.line = append(b.line, w)
	b.mu.Unlock()
	b.admit()
}

// admit lets in who is next, as long as there is room.
func (b *Lobby) admit() {
	for {
		in, ended := b.next()
		ended.ends()
		if in == nil {
			return
		}
		if !b.pass(accepted{conn: in}) {
			_ = in.Close()
			return
		}
	}
}

// next takes the next one out of the line, and returns whose place it has, too. As long as
// there is a line, admit is called again.
func (b *Lobby) next() (in, ended *Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	soonest, asked := time.Duration(0), map[netip.Prefix]bool{}
	for i, w := range b.line {
		if asked[w.from] {
			continue
		}
		asked[w.from] = true
		share := b.room.OfOne
		if !w.from.IsValid() {
			share = b.room.Served
		}
		in = newConn(w.Conn)
		in.crowded = b.crowded
		in.leave = func() {
			if b.inside.leaves(in) {
				b.admit()
			}
		}
		ended, after, ok := b.inside.enters(in, w.from, share)
		if ok {
			b.line = slices.Delete(b.line, i, i+1)
			if b.waits[w.from]--; b.waits[w.from] == 0 {
				delete(b.waits, w.from)
			}
			b.changed.Broadcast()
			return in, ended
		}
		if after > 0 && (soonest == 0 || after < soonest) {
			soonest = after
		}
	}
	if len(b.line) > 0 && !b.closed && b.again == nil {
		// Where all are being answered, one may have been, and keep us waiting, later.
		b.again = time.AfterFunc(cmp.Or(soonest, spared), func() {
			b.mu.Lock()
			b.again = nil
			b.mu.Unlock()
			b.admit()
		})
	}
	return nil, nil
}

// crowded reports whether somebody waits.
func (b *Lobby) crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.line) > 0
}

// Close closes the listener, and what waits.
func (b *Lobby) Close() error {
	b.once.Do(func() { close(b.end) })
	b.mu.Lock()
	b.closed = true
	line := b.line
	b.line = nil
	if b.again != nil {
		b.again.Stop()
	}
	b.changed.Broadcast()
	b.mu.Unlock()
	for _, w := range line {
		_ = w.Close()
	}
	return b.Listener.Close()
}
