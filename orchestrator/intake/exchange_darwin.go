package intake

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange lets two names change places at once. The error matches errNoExchange where the file
// system cannot.
func exchange(dir *os.File, name string, other *os.File, otherName string) error {
	err := unix.RenameatxNp(int(dir.Fd()), name, int(other.Fd()), otherName, unix.RENAME_SWAP)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return errNoExchange
	}
	return err
}

// shareAs does nothing here: an access control list is not carried over.
func shareAs(_, _ *os.File) error { return nil }
