// Package peer says who is at the other end of a Unix socket, as the kernel
// knows it: what they say of themselves is not asked.
package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Peer is the process at the other end. Of a socket that was passed on it is
// who connected, or began to listen.
type Peer struct {
	UID int
	PID int // 0: not known
}

// ErrStranger means that the other end is neither this user's nor root's.
var ErrStranger = errors.New("it belongs to another user")

// Of returns who is at the other end of a Unix socket.
func Of(conn net.Conn) (Peer, error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return Peer{}, errors.New("cannot tell who is at the other end: it is no socket")
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

// Check returns ErrStranger where the other end is another user's.
func Check(conn net.Conn) (Peer, error) {
	p, err := Of(conn)
	if err == nil && p.UID != os.Getuid() && p.UID != 0 {
		err = fmt.Errorf("%w (%d)", ErrStranger, p.UID)
	}
	return p, err
}

// Listener accepts only this user and root; others are hung up on.
type Listener struct {
	net.Listener
	// Refused, when not nil, is told of each of the others.
	Refused func(error)
}

// Accept waits for the next one.
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
