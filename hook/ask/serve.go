package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Conn is a connection of a hook's. It is net.Conn without that package, which the hook's program
// does not need.
type Conn interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// A Question is what a hook has asked, on the side of the shim.
type Question struct {
	Token   string
	Kind    Kind
	Payload io.Reader // ends where the payload does, or with an error
	conn    Conn
	in      *bufio.Reader
	ctl     sync.Mutex // held while something is written
	long    bool       // what is worked on may take long
	done    bool       // the answer is written
	said    chan byte  // what the hook says of an answer; closed when the hook is gone
}

// headPatience is how long a hook may take to say what it asks, payloadPatience how long until
// its payload is whole.
const (
	headPatience    = 10 * time.Second
	payloadPatience = 30 * time.Second
)

// ErrNotTaken means that the hook has not done what an answer says: its client knows nothing of
// it.
var ErrNotTaken = errors.New("the hook has not handed it over")

// Receive reads a question's header.
func Receive(conn Conn) (*Question, error) {
	q := &Question{conn: conn, in: bufio.NewReaderSize(conn, 4<<10), said: make(chan byte, 1)}
	if err := conn.SetReadDeadline(time.Now().Add(headPatience)); err != nil {
		return nil, err
	}
	var err error
	if q.Token, q.Kind, err = readHeader(q.in); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(payloadPatience)); err != nil {
		return nil, err
	}
	q.Payload = &parts{in: q.in}
	return q, nil
}

// Work begins to give signs, and to watch the hook: the context it returns ends when the hook has
// gone. It is called once the payload has been read as far as it is wanted; long says that the
// answer may take longer than a tool call of the client may wait.
func (q *Question) Work(ctx context.Context, long bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	q.long = long
	_ = q.conn.SetReadDeadline(time.Time{})
	go func() {
		defer cancel()
		q.listen()
	}()
	go q.sign(ctx)
	return ctx, cancel
}

// listen waits for what the hook says once it has asked.
func (q *Question) listen() {
	defer close(q.said)
	if _, err := io.Copy(io.Discard, q.Payload); err != nil {
		return
	}
	if b, err := q.in.ReadByte(); err == nil {
		q.said <- b
		_, _ = q.in.ReadByte() // until the hook closes
	}
}

func (q *Question) sign(ctx context.Context) {
	ticker := time.NewTicker(signEvery)
	defer ticker.Stop()
	for q.signs() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (q *Question) signs() bool {
	q.ctl.Lock()
	defer q.ctl.Unlock()
	if q.done {
		return false
	}
	b := byte(sign)
	if q.long {
		b = longSign
	}
	_ = q.conn.SetWriteDeadline(time.Now().Add(takePatience))
	_, err := q.conn.Write([]byte{b})
	return err == nil
}

// Give hands an answer to the hook, and returns once the hook has done what it says. After an
// error, which matches ErrNotTaken, the client has got nothing.
func (q *Question) Give(a Answer) error {
	if err := q.answer(a); err != nil {
		return fmt.Errorf("%w: %w", ErrNotTaken, err)
	}
	late := time.NewTimer(takePatience)
	defer late.Stop()
	select {
	case b := <-q.said:
		if b != Taken {
			return ErrNotTaken
		}
	case <-late.C:
		return fmt.Errorf("%w in %s", ErrNotTaken, takePatience)
	}
	// Where this is lost the client takes nothing, and what was handed over is offered again
	// once it is known not to have arrived.
	_, _ = q.conn.Write([]byte{known})
	return nil
}

// Say answers something of which the hook says nothing more.
func (q *Question) Say(a Answer) { _ = q.answer(a) }

func (q *Question) answer(a Answer) error {
	q.ctl.Lock()
	defer q.ctl.Unlock()
	if q.done {
		return errors.New("it was answered before")
	}
	q.done = true
	if err := q.conn.SetWriteDeadline(time.Now().Add(takePatience)); err != nil {
		return err
	}
	return a.write(q.conn)
}

// Close ends a question that Give has not answered: the hook does nothing.
func (q *Question) Close() error {
	q.Say(Answer{Kind: Nothing})
	return q.conn.Close()
}
