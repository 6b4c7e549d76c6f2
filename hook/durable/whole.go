package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// WriteWhole adds data, which must be whole lines, to a file that is open for
// reading and appending: with one write(2), which no other appender can split, or
// not at all. If the kernel wrote only a part (the disk is full, the process has a
// limit), the part is undone: it becomes a blank line, in place, because there may
// be no room for even a newline, and the next writer, which may be an `echo >>`,
// would continue our line. An error that matches ErrTorn says that this failed too.
func WriteWhole(file *os.File, data []byte) error {
	n, err := writeOnce(file, data)
	if n == len(data) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: %d of %d bytes, is the disk full?", io.ErrShortWrite, n, len(data))
	}
	if n <= 0 {
		return err
	}
	if backErr := takeBack(file, data[:n]); backErr != nil {
		return fmt.Errorf("%w; %w: %w", err, ErrTorn, backErr)
	}
	return err
}

// ErrTorn means that a part of a line was left at the end of a file.
var ErrTorn = errors.New("a part of the line stays in the file")

// writeOnce is one write(2). os.File would continue after a part, and others could
// write in between.
func writeOnce(file *os.File, data []byte) (n int, err error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var writeErr error
	err = conn.Write(func(fd uintptr) bool {
		for {
			n, writeErr = syscall.Write(int(fd), data)
			if n < 0 {
				n = 0
			}
			if writeErr != syscall.EINTR {
				return true
			}
		}
	})
	return n, errors.Join(err, writeErr)
}

// takeBack turns what the last write appended into a blank line. It ends at the
// file's offset, wherever others have appended before and since: appending sets the
// offset to its end (write(2)).
func takeBack(file *os.File, part []byte) error {
	end, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	at := end - int64(len(part))
	left := make([]byte, len(part))
	if _, err := file.ReadAt(left, at); err != nil || !bytes.Equal(left, part) {
		return errors.Join(err, errors.New("it is not where it was written"))
	}
	blanks := bytes.Repeat([]byte{' '}, len(part))
	blanks[len(blanks)-1] = '\n'
	if part[0] == '\n' {
		blanks[0] = '\n' // it ends somebody else's line
	}
	return overwrite(file, blanks, at)
}

// overwrite writes at an offset of a file that is open for appending: Linux appends
// whatever offset pwrite(2) is given, so the flag is removed for that moment.
func overwrite(file *os.File, data []byte, at int64) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var writeErr error
	err = conn.Control(func(fd uintptr) {
		flags, errno := fcntl(fd, syscall.F_GETFL, 0)
		if errno == 0 {
			_, errno = fcntl(fd, syscall.F_SETFL, flags&^syscall.O_APPEND)
		}
		if errno != 0 {
			writeErr = errno
			return
		}
		for len(data) > 0 && writeErr == nil {
			var n int
			n, writeErr = syscall.Pwrite(int(fd), data, at)
			if writeErr == syscall.EINTR {
				writeErr = nil
				continue
			}
			data, at = data[max(n, 0):], at+int64(max(n, 0))
			if n == 0 {
				writeErr = io.ErrShortWrite
			}
		}
		if _, errno := fcntl(fd, syscall.F_SETFL, flags); errno != 0 {
			writeErr = errors.Join(writeErr, errno)
		}
	})
	return errors.Join(err, writeErr)
}

func fcntl(fd uintptr, what, arg int) (int, syscall.Errno) {
	r, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, uintptr(what), uintptr(arg))
	return int(r), errno
}
