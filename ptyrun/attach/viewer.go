package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sync"
	"syscall"
	"time"

	"heartbeat/ptyrun/peer"
)

// ErrNobody means that no session listens on the socket.
var ErrNobody = errors.New("no session is running")

// Event is one thing that a viewer is told; exactly one of the fields is set.
type Event struct {
	Past   []byte // output from before the viewer joined
	Output []byte
	Size   Size   // the window's new size
	Ended  string // why nothing more comes
}

// Viewer is a guest's end of the connection. Several goroutines may call its
// methods, but only one Next.
type Viewer struct {
	// Session is what the desk said about the session.
	Session Session

	conn net.Conn
	stop func() bool
	in   *bufio.Reader
	mu   sync.Mutex // one frame at a time
}

// Join joins the session that listens at a path. The error is ErrNobody if none
// does. The connection ends with ctx.
func Join(ctx context.Context, path string, g Guest) (*Viewer, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNobody
	}
	if err != nil {
		return nil, fmt.Errorf("cannot join the session: %w", err)
	}
	if _, err := peer.Check(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot join the session: %s: %w", path, err), conn.Close())
	}
	v := &Viewer{conn: conn, in: bufio.NewReader(conn)}
	v.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := v.enter(g); err != nil {
		_ = v.Close()
		return nil, fmt.Errorf("cannot join the session: %w", err)
	}
	return v, nil
}

func (v *Viewer) enter(g Guest) error {
	if err := v.conn.SetDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	if err := v.send(frameOf(frameHello, g)); err != nil {
		return err
	}
	k, data, err := readFrame(v.in)
	switch {
	case err != nil:
		return err
	case k == frameEnded:
		return errors.New(string(data))
	case k != frameWelcome:
		return errors.New("it is not a session that answers")
	}
	if err := json.Unmarshal(data, &v.Session); err != nil {
		return err
	}
	return v.conn.SetDeadline(time.Time{})
}

// Next waits for the next event. After Ended, and when the connection is lost, it
// returns io.EOF or another error.
func (v *Viewer) Next() (Event, error) {
	for {
		k, data, err := readFrame(v.in)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				err = io.EOF
			}
			return Event{}, err
		}
		switch k {
		case frameHistory:
			return Event{Past: data}, nil
		case frameOutput:
			return Event{Output: data}, nil
		case frameEnded:
			return Event{Ended: string(data)}, nil
		case frameSize:
			var s Size
			if json.Unmarshal(data, &s) == nil && s.valid() {
				return Event{Size: s}, nil
			}
		}
	}
}

// Type types into the session.
func (v *Viewer) Type(keys []byte) error { return v.send(appendFrame(nil, frameInput, keys)) }

// Leave says that the guest leaves on purpose, before Close: what it has typed is
// done with.
func (v *Viewer) Leave() error { return v.send(appendFrame(nil, frameLeave, nil)) }

// Resize tells the session the present size of the guest's terminal.
func (v *Viewer) Resize(s Size) error { return v.send(frameOf(frameSize, s)) }

func (v *Viewer) send(frame []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, err := v.conn.Write(frame)
	return err
}

// Close leaves the session, which continues.
func (v *Viewer) Close() error {
	v.stop()
	return v.conn.Close()
}
