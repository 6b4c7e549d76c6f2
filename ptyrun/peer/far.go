package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"heartbeat/ptyrun"
)

// ErrElsewhere means that the other end of a connection is on another machine, or
// outside of the container that this process is in.
var ErrElsewhere = errors.New("the other end is on another machine")

// ErrUnseen means that the other end is on this machine, and that nobody can tell
// which processes have it: it was closed, or they hide it.
var ErrUnseen = errors.New("nobody can tell which process is at the other end")

// process is one at the other end of a connection. Its start tells it from another one
// that has its number later.
type process struct {
	pid   int
	start uint64
}

// is reports whether the process lives.
func (p process) is() bool {
	start, err := ptyrun.StartTimeOf(p.pid)
	return err == nil && start == p.start
}

// processes returns the processes of this machine that have the other end of a
// connection: of a Unix socket the one that connected, of TCP all that hold it now.
// Of a Unix socket that another user has it returns none: the socket's mode let them in.
// The error matches ErrElsewhere, ErrUnseen or, over TCP, ErrStranger. Where the system cannot tell for TCP
// (macOS), that is ErrUnseen, too.
func processes(conn net.Conn) ([]process, error) {
	if _, ok := conn.RemoteAddr().(*net.UnixAddr); ok {
		p, err := Of(conn)
		switch {
		case err != nil:
			return nil, err
		case p.UID != os.Getuid() && p.UID != 0:
			return nil, nil
		case p.PID == 0:
			return nil, ErrElsewhere
		case p.PID < 0 || p.Start == 0:
			return nil, fmt.Errorf("%w: process %d has gone", ErrUnseen, p.PID)
		}
		return []process{{p.PID, p.Start}}, nil
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

// end is the other end of a connection, as it was when that was accepted.
type end struct {
	conn net.Conn
	// of are the processes that have connected, over a Unix socket.
	of  []process
	err error

	once    sync.Once
	verdict error
}

func endOf(conn net.Conn) *end {
	e := &end{conn: conn}
	if e.isSocket() {
		e.of, e.err = processes(conn)
	}
	return e
}

func (e *end) isSocket() bool {
	_, ok := e.conn.RemoteAddr().(*net.UnixAddr)
	return ok
}

// Person returns an error unless a person is at the other end of a request's connection,
// and is the only place that asks so: person returns one for a process that is not a
// person's, and each process that has the other end has to pass. No process of ours is
// on another machine. Over TCP another user of this machine does not pass (ErrStranger):
// every user has TCP. Over a Unix socket those pass that its mode lets in.
//
// Of a Unix socket the process counts that had connected when the connection was
// accepted: the answer is kept as long as the connection is, and is no once that process
// has ended, whoever has its number then. Of TCP all count that hold it at the request.
func Person(ctx context.Context, person func(pid int) error) error {
	e, _ := ctx.Value(key{}).(*end)
	if e == nil {
		return ErrUnseen
	}
	if !e.isSocket() {
		all, err := processes(e.conn)
		return passes(all, err, person)
	}
	e.once.Do(func() { e.verdict = passes(e.of, e.err, person) })
	if e.verdict == nil {
		return gone(e.of)
	}
	return e.verdict
}

func passes(all []process, err error, person func(pid int) error) error {
	if errors.Is(err, ErrElsewhere) {
		return nil
	}
	for _, p := range all {
		err = errors.Join(err, person(p.pid))
	}
	// What was looked at under a number was the process itself only if it lives still.
	return errors.Join(err, gone(all))
}

// gone returns an error if one of the processes has ended.
func gone(all []process) error {
	for _, p := range all {
		if !p.is() {
			return fmt.Errorf("%w: process %d has gone", ErrUnseen, p.pid)
		}
	}
	return nil
}

func addrOf(a net.Addr) (netip.AddrPort, error) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("cannot tell who is at the other end: %s is not an address of TCP", a)
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

// With returns a context that knows the connection of a request, and which process has
// just made it: it is for http.Server.ConnContext.
func With(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, key{}, endOf(conn))
}

// From returns the connection of a request, or nil.
func From(ctx context.Context) net.Conn {
	if e, _ := ctx.Value(key{}).(*end); e != nil {
		return e.conn
	}
	return nil
}

// PID returns the process of this user that has made a request's connection over a Unix
// socket, and lives; 0: none that can be seen.
func PID(ctx context.Context) int {
	if e, _ := ctx.Value(key{}).(*end); e != nil && len(e.of) == 1 && e.of[0].is() {
		return e.of[0].pid
	}
	return 0
}
