// Package peer says who is at the other end of a Unix socket. It asks the kernel,
// not the peer.
package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Peer is the process at the other end. For a socket that was passed on, it is the
// process that connected, or began to listen.
type Peer struct {
	UID int
	PID int // 0: this process cannot see it, as it is outside of this one's container; -1: not known
	// Start is when the process began that has connected (ptyrun.StartTimeOf); 0: it has
	// ended, or cannot be seen.
	Start uint64
}

// ErrStranger means that the other end belongs to neither this user nor root.
var ErrStranger = errors.New("it belongs to another user")

// Of returns who is at the other end of a Unix socket.
func Of(conn net.Conn) (Peer, error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{}, errors.New("cannot tell who is at the other end: it is not a socket")
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("cannot tell who is at the other end: %w", err)
	}
	var p Peer
	var failed error
	if err := control.Control(func(fd uintptr) { p, failed = of(int(fd)) }); err != nil || failed != nil {
		return Peer{}, fmt.Errorf("cannot tell who is at the other end: %w", errors.Join(err, failed))
	}
	return p, nil
}

// Check returns ErrStranger if the other end belongs to another user.
func Check(conn net.Conn) (Peer, error) {
	p, err := Of(conn)
	if err == nil && p.UID != os.Getuid() && p.UID != 0 {
		err = fmt.Errorf("%w (%d)", ErrStranger, p.UID)
	}
	return p, err
}

// Listener accepts connections of this user and root only, and closes all others.
type Listener struct {
	net.Listener
	// Refused, if not nil, is called for each of the others.
	Refused func(error)
}

// Accept waits for the next connection.
func (l Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if _, err = Check(conn); err == nil {
			return conn, nil
		}
		if l.Refused != nil {
			l.Refused(err)
		}
		_ = conn.Close()
	}
}
