package doors

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/status"
)

// Open opens an address. A socket that nobody serves any more is replaced; a file
// that is no socket is not. The error says what is in the way.
func Open(l config.Listen) (net.Listener, error) {
	if err := Check(l); err != nil {
		return nil, err
	}
	if l.Network == "unix" {
		return openSocket(l)
	}
	return openPort(l)
}

func openPort(l config.Listen) (net.Listener, error) {
	listener, err := net.Listen(l.Network, l.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", l, cause(err))
	}
	return listener, nil
}

// cause is an error without the address that the caller names.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return takenError{}
	}
	return err
}

// takenError is EADDRINUSE in words.
type takenError struct{}

func (takenError) Error() string { return "another program uses it" }

func (takenError) Unwrap() error { return syscall.EADDRINUSE }

func openSocket(l config.Listen) (net.Listener, error) {
	if err := os.Remove(l.Address); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot listen on %s: what an earlier run left cannot be removed: %w", l, err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.Address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", l, cause(err))
	}
	if err := os.Chmod(l.Address, l.Mode); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen on %s: %w", l, err), listener.Close())
	}
	return listener, nil
}

// dialPatience is how long to wait for whoever may serve a socket.
const dialPatience = time.Second

// Check says what is in the way of an address, as far as that shows without opening
// it: its secret cannot be read; a socket's folder is gone, a file stands in its
// place, somebody serves it.
func Check(l config.Listen) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("cannot listen on %s: %w", l, fmt.Errorf(format, args...))
	}
	if l.SecretFile != "" {
		if _, err := config.ReadSecret(l.SecretFile); err != nil {
			return refuse("%w", err)
		}
	}
	if l.Network != "unix" {
		return nil
	}
	folder := filepath.Dir(l.Address)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return refuse("%w", &noFolderError{folder})
	}
	info, err := os.Lstat(l.Address)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return refuse("%w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return refuse("a file that is not a socket stands in its place")
	}
	conn, err := net.DialTimeout("unix", l.Address, dialPatience)
	if err == nil {
		_ = conn.Close()
		return refuse("%w", takenError{})
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return refuse("who serves it does not answer: %w", cause(err))
	}
	return nil
}

// noFolderError means that the folder of a socket is not there.
type noFolderError struct{ folder string }

func (e *noFolderError) Error() string { return "there is no folder " + e.folder }

// fixOf is what to type against what is in the way of an address, or "".
func fixOf(err error) string {
	if e, ok := errors.AsType[*noFolderError](err); ok {
		return "mkdir -p -m 700 '" + strings.ReplaceAll(e.folder, "'", `'\''`) + "'"
	}
	return ""
}

// Foresee says of each address whether a run could open it now.
func Foresee(addresses []config.Listen) (all []status.Door) {
	for _, l := range addresses {
		d := status.Door{Address: l.String(), Serves: words(l.Serves)}
		err := Check(l)
		if err == nil && l.Network == "tcp" {
			var listener net.Listener
			if listener, err = openPort(l); err == nil {
				_ = listener.Close()
			}
		}
		if err != nil {
			d.Problem, d.Fix = err.Error(), fixOf(err)
		}
		all = append(all, d)
	}
	return all
}

func words(services []config.Service) []string {
	all := make([]string, len(services))
	for i, s := range services {
		all[i] = string(s)
	}
	return all
}
