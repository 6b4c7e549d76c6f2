// Package flock holds advisory whole-file locks (flock(2)) on files and on
// directories.
//
// A lock belongs to the open file: the kernel releases it when its holder
// dies, and children do not inherit it, because Go opens files close-on-exec.
// A lock that was taken is kept in a table of this package until it is
// released, so that the garbage collector does not close its file and drop it
// silently. Lock files are made when missing and never removed: a lock on a
// file that was removed guards nothing.
//
// Locks are advisory and say nothing on network file systems, where flock is
// emulated.
package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// ErrHeld means that somebody else holds the lock.
var ErrHeld = errors.New("the lock is held")

// held keeps the files of taken locks alive.
var held sync.Map // :: *os.File → struct{}

// Lock takes the exclusive lock on path and returns its release; it waits
// until ctx ends, and then returns an error that matches both ErrHeld and the
// cause. Path names a file, which is made when missing, or a directory. A
// symbolic link as path's last element is refused.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	return wait(ctx, path, syscall.LOCK_EX)
}

// LockShared is Lock for the shared lock, which many may hold at once.
func LockShared(ctx context.Context, path string) (unlock func() error, err error) {
	return wait(ctx, path, syscall.LOCK_SH)
}

// TryLock takes the exclusive lock on path at once, or returns ErrHeld. It
// gives a probe (Held) that looks at the same moment a few milliseconds to go
// away.
func TryLock(path string) (unlock func() error, err error) {
	return try(path, syscall.LOCK_EX)
}

// TryLockShared is TryLock for the shared lock.
func TryLockShared(path string) (unlock func() error, err error) {
	return try(path, syscall.LOCK_SH)
}

// Held reports whether somebody, this process included, holds the exclusive
// lock on path. A path that does not exist or cannot be opened is not held.
// The answer may be out of date when it arrives.
func Held(path string) bool {
	f, err := open(path, false)
	if err != nil {
		return false
	}
	defer f.Close()
	err = flock(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = flock(f, syscall.LOCK_UN)
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// OnFile takes the exclusive lock on a file that the caller has opened, and
// waits until ctx ends. Closing f releases it.
func OnFile(ctx context.Context, f *os.File) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot lock %q: %w: %w", f.Name(), ErrHeld, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// The pauses between looks at a lock that is held: flock(2) cannot be waited
// for and given up without a thread of its own.
const (
	firstPause = 100 * time.Microsecond
	lastPause  = 5 * time.Millisecond
	tryFor     = 8 // looks of TryLock, about 5 ms
)

func wait(ctx context.Context, path string, how int) (func() error, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		unlock, err := once(path, how)
		if !errors.Is(err, ErrHeld) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func try(path string, how int) (func() error, error) {
	for look := 1; ; look++ {
		unlock, err := once(path, how)
		if !errors.Is(err, ErrHeld) || look == tryFor {
			return unlock, err
		}
		time.Sleep(time.Duration(look) * firstPause)
	}
}

// once opens path and takes the lock. When path names another file by then,
// the lock would guard a file that nobody else finds: it counts as held.
func once(path string, how int) (func() error, error) {
	f, err := open(path, true)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	err = flock(f, how|syscall.LOCK_NB)
	if err == nil && !same(f, path) {
		err = syscall.EWOULDBLOCK
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %q: %w", path, err)
	}
	held.Store(f, struct{}{})
	var release sync.Once
	return func() (err error) {
		release.Do(func() {
			held.Delete(f)
			// A child between fork and exec shares the open file for a
			// moment: unlocking frees it at once, closing alone would not.
			err = errors.Join(flock(f, syscall.LOCK_UN), f.Close())
		})
		return err
	}, nil
}

// open opens the file or directory to lock. O_NONBLOCK keeps a FIFO from
// hanging it.
func open(path string, create bool) (*os.File, error) {
	flags := os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, syscall.EISDIR) {
		return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	}
	if err != nil {
		return nil, reason(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is neither a file nor a directory")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// reason drops the path that the caller names anyway.
func reason(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		if errors.Is(pathErr.Err, syscall.ELOOP) {
			return fmt.Errorf("it is a symbolic link: %w", pathErr.Err)
		}
		return pathErr.Err
	}
	return err
}

func same(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(filepath.Clean(path))
	return err == nil && os.SameFile(mine, named)
}

func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			lockErr = syscall.Flock(int(fd), how)
			if lockErr != syscall.EINTR {
				return
			}
		}
	})
	return errors.Join(err, lockErr)
}
