package inbox

import (
	"os"
	"syscall"
)

// unwritten reports whether no process has the file open for writing: only
// then does the kernel grant a read lease (fcntl(2)). It says false where
// leases are not known, or the file is another user's.
func unwritten(file *os.File) bool { return lease(file) == 0 }

// written reports whether a process demonstrably has the file open for
// writing. The file must be open for reading only.
func written(file *os.File) bool { return lease(file) == syscall.EAGAIN }

// lease takes a read lease and gives it back.
func lease(file *os.File) (refused syscall.Errno) {
	conn, err := file.SyscallConn()
	if err != nil {
		return syscall.EBADF
	}
	err = conn.Control(func(fd uintptr) {
		_, _, refused = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_RDLCK)
		if refused == 0 {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_UNLCK)
		}
	})
	if err != nil {
		return syscall.EBADF
	}
	return refused
}
