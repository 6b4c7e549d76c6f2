package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/ptyrun"
	"heartbeat/ptyrun/lobby"
	"heartbeat/ptyrun/peer"
)

// A session's hooks ask its shim over a socket in the state directory, which the agent has no
// reason to touch.

// hooksFolder is in the state directory.
const hooksFolder = "hooks"

// hooksSocket is the path of a session's socket.
func hooksSocket(stateDir, session string) string {
	return filepath.Join(stateDir, hooksFolder, filepath.Base(session)+".sock")
}

// hooks are the answers to a session's hooks.
type hooks struct {
	path     string
	listener net.Listener
	at       os.FileInfo          // of the socket
	serve    func(l net.Listener) // answers until the listener is closed, or stop is called
	stop     context.CancelFunc
	ended    sync.WaitGroup
	lookedAt time.Time
	unseen   atomic.Bool // a hook came whose process cannot be seen from here
}

// answer begins to answer the session's hooks.
func (s *shim) answer(ctx context.Context) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.hooks.stop, s.hooks.serve = stop, func(l net.Listener) { s.serve(ctx, l) }
	s.hooks.path = hooksSocket(s.spec.StateDir, s.spec.Session)
	err := s.hooks.listen()
	if err != nil {
		stop()
	}
	return err
}

// listen opens the socket, and begins to answer who connects.
func (h *hooks) listen() error {
	path := h.path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := remove(path); err != nil {
		return err
	}
	name, done, err := ask.ShortName(path)
	if err != nil {
		return err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return fmt.Errorf("cannot listen for the session's hooks: %w", err)
	}
	l.SetUnlinkOnClose(false) // its short name is gone by then
	err = os.Chmod(path, 0o600)
	if err == nil {
		h.at, err = os.Lstat(path)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	h.listener = l
	h.ended.Go(func() { h.serve(l) })
	return nil
}

// hooksRoom is how many hooks are answered at a time: a client calls one for each of the tools
// that it runs at once. What has connected and asks nothing makes room for others.
var hooksRoom = lobby.Room{Served: 128, Waiting: 64}

func (s *shim) serve(ctx context.Context, listener net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	l := lobby.Open(listener, hooksRoom)
	defer func() { _ = l.Close() }()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(breath) // no descriptor is left, for a moment
			continue
		}
		asks := conn.(*lobby.Conn) //nolint:forcetypeassert // what a lobby accepts
		all.Go(func() {
			s.live.Answer(ctx, asks, func() (hook.Caller, error) {
				asks.Proves() // it has the session's token
				asks.Answering(true)
				caller, err := callerOf(asks)
				if errors.Is(err, errUnseen) {
					s.hooks.unseen.Store(true)
				}
				return caller, err
			})
		})
	}
}

// lookEvery is how often it is looked whether the socket is still there.
const lookEvery = time.Second

// keepListening opens the socket again where somebody has removed or replaced it.
func (s *shim) keepListening(now time.Time) {
	h := &s.hooks
	if now.Sub(h.lookedAt) < lookEvery {
		return
	}
	h.lookedAt = now
	if at, err := os.Lstat(h.path); err == nil && os.SameFile(at, h.at) {
		return
	}
	old := h.listener
	if err := h.listen(); err != nil {
		s.failed.about("cannot answer the session's hooks", err, now)
		return
	}
	_ = old.Close()
	s.log.Warn("the socket of the session's hooks was gone, and is there again")
}

// answered waits, once the client has ended, for the answers that its hooks still get, and then
// answers none.
func (s *shim) answered() {
	_ = s.hooks.listener.Close()
	s.hooks.stop()
	s.hooks.ended.Wait()
	_ = os.Remove(s.hooks.path)
}

// errUnseen means that a hook's process is in no process namespace that can be seen from here.
var errUnseen = errors.New("its process cannot be seen from here: the client runs outside of the container that heartbeat runs in")

// callerOf returns which client's hook has connected, as the system tells, and not the hook. The
// client makes each hook the leader of a process session of its own, and so it is the parent of
// the leader of the hook's: that tells a client from one inside of its session, which has
// inherited its environment. Where the system does not tell sessions (macOS), a hook of this
// user's is served.
func callerOf(conn net.Conn) (hook.Caller, error) {
	p, err := peer.Check(conn)
	if err != nil {
		return hook.Caller{}, err
	}
	switch {
	case p.PID == 0:
		return hook.Caller{}, errUnseen
	case p.PID < 0 || p.Start == 0:
		return hook.Caller{}, errors.New("the hook has ended")
	}
	client, err := ptyrun.ParentOfSession(p.PID)
	if err != nil {
		return hook.Caller{}, fmt.Errorf("cannot tell which client has called the hook: %w", err)
	}
	start, err := ptyrun.StartTimeOf(client)
	if err != nil {
		return hook.Caller{}, fmt.Errorf("cannot tell which client has called the hook: %w", err)
	}
	return hook.Caller{Client: hook.Process{PID: client, Start: start}, Hook: hook.Process{PID: p.PID, Start: p.Start}}, nil
}
