package intake

import (
	"os"
	"syscall"
)

// writers tells whether a process has a file open for writing, of one that is open for reading
// only: the kernel grants a read lease if none has (fcntl(2)), and none of another user's file.
func writers(file *os.File) use {
	conn, err := file.SyscallConn()
	if err != nil {
		return useUnknown
	}
	var refused syscall.Errno
	err = conn.Control(func(fd uintptr) {
		_, _, refused = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_RDLCK)
		if refused == 0 {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_UNLCK)
		}
	})
	switch {
	case err != nil:
		return useUnknown
	case refused == 0:
		return unused
	case refused == syscall.EAGAIN:
		return used
	}
	return useUnknown
}
