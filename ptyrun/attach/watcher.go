package attach

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxWaiting is how much output may wait for a slow guest; beyond it, output is
	// dropped and the terminal is painted again.
	maxWaiting = 1 << 20
	// stuckAfter is how long one write to a guest may take.
	stuckAfter = 15 * time.Second
	// helloWait is how long a guest may take to say who it is.
	helloWait = 5 * time.Second
	// pieceSize is how much is written to a guest at once, so that a guest with a
	// slow line is seen to make progress.
	pieceSize = 32 << 10
)

// watcher is a guest who has joined.
type watcher struct {
	conn  net.Conn
	guest Guest
	typed time.Time // when it last pressed a key; the desk's lock guards it

	mu      sync.Mutex
	waiting []byte // frames
	lost    bool   // output was dropped since the last write
	last    bool   // nothing follows the waiting frames
	wake    chan struct{}
}

func newWatcher(conn net.Conn, g Guest) *watcher {
	return &watcher{conn: conn, guest: g, wake: make(chan struct{}, 1)}
}

// give queues frames and never blocks.
func (w *watcher) give(frames []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting)+len(frames) > maxWaiting {
		w.waiting, w.lost = nil, true
		return
	}
	w.waiting = append(w.waiting, frames...)
	w.notify()
}

// giveLast queues frames, and closes the connection after them.
func (w *watcher) giveLast(frames []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.last = append(w.waiting, frames...), true
	w.notify()
}

func (w *watcher) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() (frames []byte, lost, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	frames, lost, last = w.waiting, w.lost, w.last
	w.waiting, w.lost = nil, false
	return frames, lost, last
}

// serve writes to the guest until its connection breaks or everything is sent. It
// calls repaint when the guest has missed output.
func (w *watcher) serve(repaint func()) {
	defer w.conn.Close()
	for range w.wake {
		frames, lost, last := w.take()
		for len(frames) > 0 {
			if w.conn.SetWriteDeadline(time.Now().Add(stuckAfter)) != nil {
				return
			}
			n, err := w.conn.Write(frames[:min(len(frames), pieceSize)])
			if err != nil {
				return
			}
			frames = frames[n:]
		}
		if last {
			return
		}
		if lost {
			// What the guest got may end in the middle of a sequence: CAN cancels
			// it.
			w.give(appendFrame(nil, frameOutput, []byte("\x18\x1b[0m")))
			repaint()
		}
	}
}

// greet reads who the guest is.
func greet(conn net.Conn, in *bufio.Reader) (Guest, error) {
	var g Guest
	if err := conn.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
		return g, err
	}
	k, data, err := readFrame(in)
	if err != nil {
		return g, err
	}
	if k != frameHello {
		return g, errors.New("the first frame is not a greeting")
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return g, err
	}
	return g, conn.SetReadDeadline(time.Time{})
}
