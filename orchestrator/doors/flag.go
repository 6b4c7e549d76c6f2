package doors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"heartbeat/config"
)

// Flag is the address of a run's flag --metrics. It is open, but does not answer
// yet.
type Flag struct{ l net.Listener }

// standardPort is the port in examples; triedPorts is how many ports from there on
// are tried for a free one.
const standardPort, triedPorts = 9464, 100

// OpenFlag opens the address HOST:PORT. Without a host, or with only a port, it is
// one that only this machine can reach. The error is an *AddressError.
func OpenFlag(addr string) (*Flag, error) {
	if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &AddressError{Addr: addr, host: config.Loopback, err: errors.New("it is not HOST:PORT or :PORT")}
	}
	host = cmp.Or(host, config.Loopback)
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err == nil {
		return &Flag{l}, nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
		host = config.Loopback // it may not be an address of this machine
	}
	return nil, &AddressError{Addr: addr, host: host, err: err}
}

// AddressError means that an address cannot be used.
type AddressError struct {
	Addr string
	host string // where another port may be free
	err  error
}

// Error names the address.
func (e *AddressError) Error() string {
	return fmt.Sprintf("cannot serve metrics on %q: %v", e.Addr, e.err)
}

// Unwrap returns the cause.
func (e *AddressError) Unwrap() error { return e.err }

// Hint names an address that is free now.
func (e *AddressError) Hint() string {
	for port := standardPort; port < standardPort+triedPorts; port++ {
		free := net.JoinHostPort(e.host, strconv.Itoa(port))
		l, err := net.Listen("tcp", free)
		if err != nil {
			continue
		}
		_ = l.Close()
		if e.host == config.Loopback {
			free = fmt.Sprintf(":%d", port)
		}
		return "heartbeat run --metrics " + free + " (it is free)"
	}
	return "name an address and a port of this machine that are free"
}

// Addr returns where it listens.
func (f *Flag) Addr() string { return f.l.Addr().String() }

// Loopback reports whether only this machine can reach it.
func (f *Flag) Loopback() bool {
	tcp, ok := f.l.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Serve answers for metrics until ctx ends, and closes the address.
func (f *Flag) Serve(ctx context.Context, metrics http.Handler, log *slog.Logger) {
	if f.Loopback() {
		metrics = byAddress(metrics)
	}
	if err := Serve(ctx, f.l, metrics, log); err != nil {
		log.Error("metrics are not served any more", "err", err)
	}
}
