package inbox

import (
	"os"
	"syscall"
)

// unwritten reports whether no process has the file open for writing: only
// then does the kernel grant a read lease (fcntl(2)). It says false where
// leases are not known, or the file is another user's.
func unwritten(file *os.File) bool {
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	granted := false
	err = conn.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_RDLCK)
		granted = errno == 0
		if granted {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_UNLCK)
		}
	})
	return err == nil && granted
}
