package lobby

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"

	"heartbeat/ptyrun/peer"
)

// mostUnread is how much is read of a request that was answered without being read whole.
const mostUnread = 256 << 10

// progress is how much of a request has to arrive to count as having been heard. Whoever
// sends less, a byte at a time, keeps us waiting like who sends nothing.
const progress = 8 << 10

// Of returns the connection of a request, or nil: it has not come in by a lobby.
func Of(ctx context.Context) *Conn {
	c, _ := peer.From(ctx).(*Conn)
	return c
}

// Attend has a server tell its connections when their request is being answered: until the
// answer is written, which is later than when its handler returns. While the rest of a
// request is being read, its client keeps us waiting. While others wait, who has proven
// nothing has no third answer on one connection. It sets the server's ConnContext to
// peer.With, and its ConnState.
func Attend(s *http.Server) {
	s.Handler = noticing(s.Handler)
	s.ConnContext = peer.With
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if c, ok := conn.(*Conn); ok && state == http.StateIdle {
			c.Answering(false)
		}
	}
}

func noticing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := Of(r.Context())
		if c == nil {
			next.ServeHTTP(w, r)
			return
		}
		c.Answering(true)
		// Who has the next request ready is answered again at once, until the runtime takes the
		// processor away, after 10 ms: with a hundred of them nobody new is even accepted. With
		// one request each, in turn, who has a token waits 0.2 s beside 700 of them, and not
		// 20 s and more (measured).
		runtime.Gosched()
		if c.answered.Load() && !c.proven.Load() && c.crowded() {
			w.Header().Set("Connection", "close") // the next one is another's
		}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &arriving{ReadCloser: r.Body, from: c}
			// Who is still sending what was answered without being read would see a closed
			// connection in place of the answer, which is sent after this.
			defer func(body io.Reader) { _, _ = io.CopyN(io.Discard, body, mostUnread) }(r.Body)
		}
		next.ServeHTTP(w, r)
	})
}

// arriving is a body on its way.
type arriving struct {
	io.ReadCloser
	from *Conn
	n    int // what has arrived since it was heard last
}

func (a *arriving) Read(b []byte) (int, error) {
	defer a.from.waitedFor()()
	n, err := a.ReadCloser.Read(b)
	if a.n += n; a.n >= progress {
		a.n = 0
		a.from.heard()
	}
	return n, err
}

// Turns lets a number of requests be answered at a time: those that take long, or much
// memory. Each element is a place that is taken.
type Turns chan struct{}

// Take waits for a turn, until ctx ends. Meanwhile a request's connection keeps us
// waiting, so that newcomers find a place. Done gives the turn back.
func (t Turns) Take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
	default:
		defer Of(ctx).waitedFor()()
		select {
		case t <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return func() { <-t }, nil
}
