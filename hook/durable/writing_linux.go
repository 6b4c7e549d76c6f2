package durable

import (
	"os"
	"syscall"
)

// WritingOf tells whether a process has a file open for writing, of one that is open for reading
// only: the kernel grants a read lease if none has (fcntl(2)). Of another user's file, and where
// leases are not known, it cannot be told.
func WritingOf(file *os.File) Writing {
	conn, err := file.SyscallConn()
	if err != nil {
		return WritingUnknown
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
		return WritingUnknown
	case refused == 0:
		return NotWritten
	case refused == syscall.EAGAIN:
		return Written
	}
	return WritingUnknown
}
