package files

import (
	"os"
	"syscall"
)

// isUnwritten reports whether no process has the file open for writing: only then does the kernel
// grant a read lease (fcntl(2)). It is false where leases are not known, or the file is another
// user's.
func isUnwritten(file *os.File) bool {
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	var refused syscall.Errno
	err = conn.Control(func(fd uintptr) {
		_, _, refused = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_RDLCK)
		if refused == 0 {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETLEASE, syscall.F_UNLCK)
		}
	})
	return err == nil && refused == 0
}
