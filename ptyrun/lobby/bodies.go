package lobby

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrNoRoom means that the bodies of other requests have all the room that there is.
var ErrNoRoom = errors.New("the requests of others are being read")

// stalled is how long the rest of a body may stay away before its room may be taken.
const stalled = time.Second

// Bodies bounds what the bodies of requests take of the memory at a time: Most bytes, in all.
// Where there is no room, a newcomer takes that of the one that has kept us waiting longest
// for the rest of its body, with its connection.
type Bodies struct {
	Most int

	mu    sync.Mutex
	taken int
	held  map[*Body]bool
	freed chan struct{} // closed when there is more room; nil: nobody waits for it
}

// Body is the room of one body.
type Body struct {
	of    *Bodies
	size  int
	conn  *Conn // nil: it has not come in by a lobby
	whole bool
}

// Enter takes room for a body of at most so many bytes, before any of it is read, and waits
// for it until ctx ends: ErrNoRoom. Meanwhile its connection keeps us waiting. The body has
// to leave.
func (b *Bodies) Enter(ctx context.Context, size int) (*Body, error) {
	body := &Body{of: b, size: min(size, b.Most), conn: Of(ctx)}
	for {
		slowest, freed, ok := b.enters(body)
		if ok {
			return body, nil
		}
		slowest.ends()
		if !waitsFor(ctx, freed, body.conn) {
			return nil, ErrNoRoom
		}
	}
}

// waitsFor waits for a moment, or until there is more room; false: ctx has ended.
func waitsFor(ctx context.Context, freed <-chan struct{}, c *Conn) bool {
	defer c.waitedFor()()
	select {
	case <-freed:
	case <-time.After(spared):
	case <-ctx.Done():
		return false
	}
	return true
}

// enters takes the room if it is there, or returns whose connection to close for it.
func (b *Bodies) enters(body *Body) (slowest *Conn, freed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken+body.size <= b.Most {
		if b.held == nil {
			b.held = map[*Body]bool{}
		}
		b.taken += body.size
		b.held[body] = true
		return nil, nil, true
	}
	since := time.Now().Add(-stalled)
	for o := range b.held {
		if o.whole || o.conn == nil {
			continue
		}
		if at := o.conn.waits(); !at.IsZero() && !at.After(since) {
			slowest, since = o.conn, at
		}
	}
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	return slowest, b.freed, false
}

// Arrived says that the body has arrived, and how large it is: nobody takes its room now.
func (o *Body) Arrived(size int) {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.whole = true
	if size < o.size {
		o.of.taken -= o.size - size
		o.size = size
		o.of.frees()
	}
}

// Leave gives the room back.
func (o *Body) Leave() {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	delete(o.of.held, o)
	o.of.taken -= o.size
	o.size = 0
	o.of.frees()
}

// frees tells who waits that there is more room. The caller holds b.mu.
func (b *Bodies) frees() {
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}
