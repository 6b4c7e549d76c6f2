package intake

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange lets two names change places at once. The error matches errNoExchange where the file
// system cannot.
func exchange(dir *os.File, name string, other *os.File, otherName string) error {
	err := unix.Renameat2(int(dir.Fd()), name, int(other.Fd()), otherName, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return errNoExchange
	}
	return err
}

// shareAs lets those use a file who may use another one by its access control list (acl(5)).
func shareAs(file, other *os.File) error {
	const list = "system.posix_acl_access"
	buf := make([]byte, 64<<10) // the longest that there is: xattr(7)
	n, err := unix.Fgetxattr(int(other.Fd()), list, buf)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	if err != nil {
		return err
	}
	return unix.Fsetxattr(int(file.Fd()), list, buf[:n], 0)
}
