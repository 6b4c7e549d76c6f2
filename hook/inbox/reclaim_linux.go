package inbox

import (
	"errors"
	"os"
	"syscall"
)

// The modes of fallocate(2) that keep the size and free the blocks.
const (
	keepSize = 0x1 // FALLOC_FL_KEEP_SIZE
	hole     = 0x2 // FALLOC_FL_PUNCH_HOLE
)

func punchHole(file *os.File, to int64) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var punchErr error
	err = conn.Control(func(fd uintptr) {
		for {
			punchErr = syscall.Fallocate(int(fd), keepSize|hole, 0, to)
			if punchErr != syscall.EINTR {
				return
			}
		}
	})
	if errors.Is(punchErr, syscall.EOPNOTSUPP) || errors.Is(punchErr, syscall.ENOSYS) {
		return errNoHoles
	}
	return errors.Join(err, punchErr)
}
