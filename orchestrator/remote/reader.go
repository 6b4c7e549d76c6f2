package remote

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReaderGone reports whether nobody reads a pipe, socket or terminal any more: sshd
// closes it when the connection ends, and tells no process (poll(2)).
func ReaderGone(out *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(out.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
