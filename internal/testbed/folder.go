package testbed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// prefix and a few digits are the name of a folder: short, because the paths of
// sockets below may have 107 bytes.
const prefix = "hbtest"

// folder makes a folder that is locked as long as held is open.
func folder(parent string) (dir string, held *os.File, err error) {
	for range 10 {
		dir = filepath.Join(parent, fmt.Sprintf("%s%05d", prefix, rand.IntN(100_000)))
		if err = os.Mkdir(dir, 0o711); errors.Is(err, os.ErrExist) { // some tests are another user
			continue
		}
		if err != nil {
			return "", nil, err
		}
		held, err = os.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was swept before it was locked
		}
		if err != nil {
			return "", nil, err
		}
		if err = syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
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
