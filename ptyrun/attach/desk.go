// Package attach lets people at other terminals join the terminal of a
// running child: a desk listens on a Unix socket, passes the child's output to
// every guest and what guests type to the child. A guest who reads slowly
// loses output and gets the screen painted again; the child never waits for it.
//
// A program in a terminal cannot be asked what it shows. A guest who joins gets
// the last output and then a nudge: the window is made one column narrower for
// a moment, which makes full-screen programs paint all of it (measured with
// Claude Code 2.1.329). One that ignores its window's size stays as the last
// output left it.
//
// The window has the size of the guest's terminal who last joined or resized
// and may type; when nobody is left, that of before.
//
// The socket is for this user and root, whatever its mode. Every process of theirs may
// look; only a person may type (Config.Person).
package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"heartbeat/ptyrun/lobby"
	"heartbeat/ptyrun/peer"
)

// Terminal is what guests join; *ptyrun.Child is one. Write may block for seconds,
// Resize must not.
type Terminal interface {
	io.Writer
	Resize(rows, cols int) error
}

// Config describes what guests join.
type Config struct {
	Agent   string
	Session string
	Size    Size // the terminal's size while no guest is there
	// Person returns an error for a process that is not a person's: its guest may not
	// type. nil: nobody may.
	Person func(pid int) error
	Log    *slog.Logger // nil: none
}

const (
	// maxGuests limits how many guests there are at once.
	maxGuests = 32
	// maxHistory is how much of the last output a guest gets first.
	maxHistory = 64 << 10
	// nudgeTime is how long the window stays narrower (the client has painted
	// everything again after 0.3 s).
	nudgeTime = 300 * time.Millisecond
	// farewell is how long guests may take to read the last output.
	farewell = 500 * time.Millisecond
)

// room is how many may be connected, with those that have not said who they are: these make
// room for others. Our descriptors are the session's.
var room = lobby.Room{Served: 2 * maxGuests, Waiting: 16}

// Desk is where guests join a terminal. It is an io.Writer for the terminal's
// output that never blocks and never fails.
type Desk struct {
	cfg      Config
	term     Terminal // set by Serve
	listener *net.UnixListener
	serving  sync.WaitGroup
	typing   sync.Mutex // one guest's keys at a time
	changed  chan struct{}

	mu      sync.Mutex
	guests  []*watcher
	sizes   []*watcher // guests whose size counts, the latest last
	size    Size       // of the window, apart from a nudge
	nudge   *time.Timer
	history []byte
	modes   modes
	typed   time.Time
	done    time.Time
	closed  bool
}

// Listen opens a desk at a path in a directory that only this user can enter. It
// replaces a socket that already exists: the caller must know that nobody listens
// on it. Guests wait until Serve is called. Close removes the socket.
func Listen(path string, cfg Config) (*Desk, error) {
	// A link there is removed, not followed.
	if info, err := os.Lstat(path); err == nil && (info.Mode().Type() == fs.ModeSocket || info.Mode().Type() == fs.ModeSymlink) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("cannot replace the socket of a former session: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot let others join the session: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot let others join the session: %w", err), l.Close())
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{cfg: cfg, listener: l, size: cfg.Size, changed: make(chan struct{}, 1)}, nil
}

// Serve lets guests join a terminal. It returns at once.
func (d *Desk) Serve(t Terminal) {
	d.term = t
	d.serving.Go(d.accept)
}

// Write passes output to all guests.
func (d *Desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.modes.note(p)
	d.history = append(d.history, p...)
	if len(d.history) > 2*maxHistory {
		d.history = slices.Clone(d.history[len(d.history)-maxHistory:])
	}
	if len(d.guests) > 0 {
		d.tellLocked(appendFrame(nil, frameOutput, p))
	}
	return len(p), nil
}

// People returns how many guests that may type are there, and when one of them last
// pressed a key (zero: never). What was typed up to done is done with: who typed it
// has left on purpose.
func (d *Desk) People() (n int, typed, done time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.guests {
		if !w.guest.ReadOnly {
			n++
		}
	}
	return n, d.typed, d.done
}

// Changed signals that the result of People may have changed. It is one channel for
// one reader.
func (d *Desk) Changed() <-chan struct{} { return d.changed }

func (d *Desk) change() {
	select {
	case d.changed <- struct{}{}:
	default: // the last one has not been read yet
	}
}

// Close tells the guests why the session has ended and disconnects them, within
// half a second.
func (d *Desk) Close(why string) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	if d.nudge != nil {
		d.nudge.Stop()
	}
	for _, w := range d.guests {
		w.giveLast(appendFrame(nil, frameEnded, []byte(why)))
	}
	d.mu.Unlock()
	err := d.listener.Close() // also removes the socket
	left := make(chan struct{})
	go func() {
		d.serving.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(farewell):
		d.hangUp()
	}
	return err
}

func (d *Desk) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.guests {
		_ = w.conn.Close() // its goroutines end
	}
}

func (d *Desk) accept() {
	strangers := func(err error) { d.cfg.Log.Warn("refused a connection to the session", "err", err) }
	l := lobby.Open(peer.Listener{Listener: d.listener, Refused: strangers}, room)
	defer func() { _ = l.Close() }()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// For example out of descriptors: the session continues without guests
			// until there are some again.
			d.cfg.Log.Warn("cannot let somebody join", "err", err)
			time.Sleep(time.Second)
			continue
		}
		guest := conn.(*lobby.Conn) //nolint:forcetypeassert // what a lobby accepts
		who := peer.With(context.Background(), conn)
		d.serving.Go(func() { d.receive(who, guest) })
	}
}

// receive serves one guest until it leaves.
func (d *Desk) receive(who context.Context, conn *lobby.Conn) {
	in := bufio.NewReader(conn)
	guest, err := greet(conn, in)
	if err != nil {
		d.cfg.Log.Debug("somebody did not join", "err", err)
		_ = conn.Close()
		return
	}
	conn.Answering(true)
	w := newWatcher(conn, guest)
	var writing sync.WaitGroup
	writing.Go(func() { w.serve(d.repaint) })
	defer writing.Wait()
	if err := d.mayType(who, guest); err != nil {
		d.cfg.Log.Warn("somebody may not type", "err", err)
		w.giveLast(appendFrame(nil, frameEnded, []byte(err.Error())))
		return
	}
	if !guest.ReadOnly {
		conn.Proves()
	}
	if !d.admit(w) {
		return
	}
	for {
		k, data, err := readFrame(in)
		if err != nil {
			break
		}
		d.heed(w, k, data)
	}
	d.dismiss(w)
	_ = conn.Close() // ends a write to a guest that does not read
}

// mayType returns why a guest that is to type may not: a session's own process, or
// another session's, could give itself orders in a person's name, and hold its queue.
func (d *Desk) mayType(who context.Context, g Guest) error {
	switch {
	case g.ReadOnly:
		return nil
	case d.cfg.Person == nil:
		return errors.New("nobody may type here")
	}
	return peer.Person(who, d.cfg.Person)
}

// admit greets a guest and adds it to those who get output.
func (d *Desk) admit(w *watcher) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		w.giveLast(appendFrame(nil, frameEnded, []byte("the session is over")))
		return false
	case len(d.guests) >= maxGuests && !d.displaceLocked():
		w.giveLast(appendFrame(nil, frameEnded, []byte("too many have joined already")))
		return false
	}
	d.guests = append(d.guests, w)
	d.change()
	d.claimLocked(w, w.guest.Size)
	hello := frameOf(frameWelcome, Session{
		Agent: d.cfg.Agent, Session: d.cfg.Session, Size: d.size, Modes: d.modes.enter(),
	})
	past := d.history[max(0, len(d.history)-maxHistory):]
	w.give(appendFrame(hello, frameHistory, past))
	d.repaintLocked()
	d.cfg.Log.Debug("somebody has joined", "read-only", w.guest.ReadOnly)
	return true
}

// displaceLocked has the first guest leave that only looks, as every process of this user
// may; false: there is none. Otherwise these could keep people out for good.
func (d *Desk) displaceLocked() bool {
	at := slices.IndexFunc(d.guests, func(w *watcher) bool { return w.guest.ReadOnly })
	if at < 0 {
		return false
	}
	d.guests[at].giveLast(appendFrame(nil, frameEnded, []byte("too many look on, and another one has joined")))
	d.guests = slices.Delete(d.guests, at, at+1)
	return true
}

func (d *Desk) dismiss(w *watcher) {
	w.giveLast(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	is := func(o *watcher) bool { return o == w }
	d.guests = slices.DeleteFunc(d.guests, is)
	d.sizes = slices.DeleteFunc(d.sizes, is)
	d.change()
	if !d.closed {
		d.resizeLocked()
		d.cfg.Log.Debug("somebody has left", "read-only", w.guest.ReadOnly)
	}
}

// heed does what a guest asks for. It ignores what it does not understand.
func (d *Desk) heed(w *watcher, k kind, data []byte) {
	switch {
	case w.guest.ReadOnly:
	case k == frameLeave:
		d.leave(w)
	case k == frameInput:
		d.noteTyping(w, data)
		d.typing.Lock()
		defer d.typing.Unlock()
		if _, err := d.term.Write(data); err != nil {
			// The child does not read: keys are lost, as on any terminal.
			d.cfg.Log.Debug("keys are lost", "err", err)
		}
	case k == frameSize:
		var s Size
		if json.Unmarshal(data, &s) != nil {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.claimLocked(w, s)
		d.resizeLocked()
	}
}

// leave notes that a guest is done, unless somebody else who has typed is there.
func (d *Desk) leave(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.guests, func(o *watcher) bool { return o != w && !o.typed.IsZero() }) {
		d.done = d.typed
		d.change()
	}
}

func (d *Desk) noteTyping(w *watcher, keys []byte) {
	if onlyReports(keys) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.typed = time.Now()
	w.typed = d.typed
	d.change()
}

func (d *Desk) tellLocked(frames []byte) {
	for _, w := range d.guests {
		w.give(frames)
	}
}
