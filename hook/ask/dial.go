package ask

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dialAgain is when a hook tries once more: the shim makes its socket again within a second.
const dialAgain = 1500 * time.Millisecond

// dial connects to a shim's socket.
func dial(path string) (*os.File, error) {
	conn, err := connect(path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		time.Sleep(dialAgain)
		conn, err = connect(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reach the session's shim at %q: %w", path, err)
	}
	return conn, nil
}

// connect is net.Dial without what that package adds to a start: with cgo it has the program
// load the system's resolver.
func connect(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, syscall.ENOENT
	}
	name, done, err := ShortName(path)
	if err != nil {
		return nil, err
	}
	defer done()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// A shim that has been stopped may have its queue of connections full.
	limit := syscall.NsecToTimeval(int64(signPatience))
	err = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit)
	if err == nil {
		err = connectTo(fd, name)
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, os.NewSyscallError("connect", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func connectTo(fd int, name string) error {
	for {
		err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: name})
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// longestName is the longest path of a Unix socket: sun_path of macOS, which has the shortest,
// less its end (unix(4)).
const longestName = 103
