package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
)

// ErrElsewhere means that the other end of a connection is on another machine, or
// outside of the container that this process is in.
var ErrElsewhere = errors.New("the other end is on another machine")

// ErrUnseen means that the other end is on this machine, and that nobody can tell
// which processes have it: it was closed, or they hide it.
var ErrUnseen = errors.New("nobody can tell which process is at the other end")

// processes returns the processes of this machine that have the other end of a
// connection: of a Unix socket the one that connected, of TCP all that hold it now.
// Those of other users are left out: it returns none where another user has it. The
// error matches ErrElsewhere or ErrUnseen. Where the system cannot tell for TCP
// (macOS), there are none, either.
func processes(conn net.Conn) ([]int, error) {
	if _, ok := conn.RemoteAddr().(*net.UnixAddr); ok {
		p, err := Of(conn)
		switch {
		case err != nil:
			return nil, err
		case p.UID != os.Getuid() && p.UID != 0:
			return nil, nil
		case p.PID == 0:
			return nil, ErrElsewhere
		case p.PID < 0 || !lives(p.PID):
			return nil, fmt.Errorf("%w: process %d has gone", ErrUnseen, p.PID)
		}
		return []int{p.PID}, nil
	}
	there, err := addrOf(conn.RemoteAddr())
	if err != nil {
		return nil, err
	}
	here, err := addrOf(conn.LocalAddr())
	if err != nil {
		return nil, err
	}
	return holders(there, here)
}

// Person returns an error unless a person is at the other end of a connection, and is
// the only place that asks so: person returns one for a process that is not a
// person's, and each process that has the other end has to pass. No process of ours is
// on another machine, or is another user's.
func Person(conn net.Conn, person func(pid int) error) error {
	if conn == nil {
		return ErrUnseen
	}
	pids, err := processes(conn)
	if errors.Is(err, ErrElsewhere) {
		return nil
	}
	for _, pid := range pids {
		err = errors.Join(err, person(pid))
	}
	return err
}

func addrOf(a net.Addr) (netip.AddrPort, error) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("cannot tell who is at the other end: %s is no address of TCP", a)
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}

// isLocal reports whether an address is one of this machine's.
func isLocal(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // nobody knows
	}
	for _, one := range all {
		if p, ok := one.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(p.IP); ok && ip.Unmap() == a {
				return true
			}
		}
	}
	return false
}

type key struct{}

// With returns a context that knows the connection of a request.
func With(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, key{}, conn)
}

// From returns the connection of a request, or nil.
func From(ctx context.Context) net.Conn {
	conn, _ := ctx.Value(key{}).(net.Conn)
	return conn
}
