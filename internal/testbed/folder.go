package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const prefix = "hbtest-" // short, for the paths of sockets

// folder makes a folder that is locked as long as held is open.
func folder(parent string) (dir string, held *os.File, err error) {
	for range 5 {
		if dir, err = os.MkdirTemp(parent, prefix); err != nil {
			return "", nil, err
		}
		held, err = os.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was swept before it was locked
		}
		if err != nil {
			return "", nil, err
		}
		err = errors.Join(syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB),
			os.Chmod(dir, 0o711)) // some tests are another user
		if err == nil {
			return dir, held, nil
		}
		held.Close()
	}
	return "", nil, err
}

// sweep removes the folders that test binaries left as they were killed: memory
// is not given back otherwise.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, prefix+"[0-9]*"))
	for _, dir := range left {
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
