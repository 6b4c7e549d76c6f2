// Package flock holds advisory whole-file locks (flock(2)) on files and on
// directories.
//
// A lock belongs to the open file: the kernel releases it when its holder dies, and
// children do not inherit it, because Go opens files close-on-exec. This package
// keeps each lock that it holds in a table until it is released, so that the
// garbage collector does not close its file and drop it silently. Lock files are
// created if they are missing and never removed: a lock on a file that was removed
// guards nothing.
//
// Locks are advisory and guarantee nothing on network file systems, where flock is
// emulated.
package flock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// ErrHeld means that somebody else holds the lock.
var ErrHeld = errors.New("the lock is held")

// taken keeps the files of taken locks alive.
var taken sync.Map // :: *os.File → struct{}

// Folder is an open directory whose lock files are opened by name, wherever its
// path leads by now.
type Folder interface {
	// OpenFile opens a regular file without waiting for anything.
	OpenFile(name string, flag int) (*os.File, error)
	// Stat describes a name without following a link.
	Stat(name string) (fs.FileInfo, error)
	Path() string
}

// Lock takes the exclusive lock on path and returns its release. It waits until ctx
// ends, and then returns an error that matches both ErrHeld and the cause. Path
// names a file, which is created if it is missing, or a directory. A symbolic link
// as path's last element is refused.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	return wait(ctx, at(path))
}

// LockIn is Lock for a file of a folder.
func LockIn(ctx context.Context, f Folder, name string) (unlock func() error, err error) {
	return wait(ctx, in(f, name))
}

// TryLock takes the exclusive lock on path at once, or returns ErrHeld. It waits for a
// probe (Held) that looks at the same moment, up to five seconds: a busy machine may
// interrupt it there.
func TryLock(path string) (unlock func() error, err error) {
	return try(at(path))
}

// LockFolder is Lock for a directory that must exist; a missing one is not created.
func LockFolder(ctx context.Context, path string) (unlock func() error, err error) {
	return wait(ctx, folder(path))
}

// TryLockFolder is TryLock for a directory that must exist.
func TryLockFolder(path string) (unlock func() error, err error) {
	return try(folder(path))
}

// TryLockIn is TryLock for a file of a folder.
func TryLockIn(f Folder, name string) (unlock func() error, err error) {
	return try(in(f, name))
}

// Held reports whether somebody, this process included, holds the exclusive
// lock on path. A path that does not exist or cannot be opened is not held.
// The answer may be out of date when it arrives.
func Held(path string) bool { return held(at(path)) }

// HeldIn is Held for a file of a folder.
func HeldIn(f Folder, name string) bool { return held(in(f, name)) }

func held(t target) bool {
	f, err := t.open(false)
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

// target is a name that a lock is for.
type target struct {
	shown string
	named bool // errors of open name it
	open  func(create bool) (*os.File, error)
	stat  func() (fs.FileInfo, error)
}

func at(path string) target {
	return target{
		shown: path,
		open:  func(create bool) (*os.File, error) { return open(path, create) },
		stat:  func() (fs.FileInfo, error) { return os.Lstat(filepath.Clean(path)) },
	}
}

func folder(path string) target {
	t := at(path)
	t.open = func(bool) (*os.File, error) { return openFolder(path) }
	return t
}

func in(f Folder, name string) target {
	return target{
		shown: filepath.Join(f.Path(), name), named: true,
		open: func(create bool) (*os.File, error) {
			flags := os.O_RDWR
			if create {
				flags |= os.O_CREATE
			}
			return f.OpenFile(name, flags)
		},
		stat: func() (fs.FileInfo, error) { return f.Stat(name) },
	}
}

// OnFile takes the exclusive lock on a file that the caller has opened, and waits
// until ctx ends. Closing f releases the lock.
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

// The pauses between attempts at a lock that is held: a wait for flock(2) cannot be
// given up without a thread of its own.
const (
	firstPause = 100 * time.Microsecond
	lastPause  = 5 * time.Millisecond
	tryFor     = 8               // attempts of TryLock, about 5 ms
	probedFor  = 5 * time.Second // of TryLock, while nobody but a probe has the lock
)

func wait(ctx context.Context, t target) (func() error, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		unlock, err := once(t)
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

func try(t target) (func() error, error) {
	began := time.Now()
	for look := 1; ; look++ {
		unlock, err := once(t)
		if !errors.Is(err, ErrHeld) || look >= tryFor && (held(t) || time.Since(began) > probedFor) {
			return unlock, err
		}
		time.Sleep(min(time.Duration(look)*firstPause, lastPause))
	}
}

// once opens the target and takes the lock. If its name belongs to another file by
// then, the lock would guard a file that nobody else finds: it counts as held.
func once(t target) (func() error, error) {
	f, err := t.open(true)
	if err != nil && t.named {
		return nil, fmt.Errorf("cannot take a lock: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", t.shown, err)
	}
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && !t.is(f) {
		err = syscall.EWOULDBLOCK
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %q: %w", t.shown, err)
	}
	taken.Store(f, struct{}{})
	var release sync.Once
	return func() (err error) {
		release.Do(func() {
			taken.Delete(f)
			// A child between fork and exec shares the open file for a
			// moment: unlocking frees it at once, closing alone would not.
			err = errors.Join(flock(f, syscall.LOCK_UN), f.Close())
		})
		return err
	}, nil
}

// open opens the file or directory to lock, and nothing else: a FIFO would block,
// and opening a device may have effects.
func open(path string, create bool) (*os.File, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		return openFolder(path)
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case err == nil && !info.Mode().IsRegular():
		return nil, errNeither
	}
	flags := os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, reason(err)
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNeither
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Why something cannot be locked.
var (
	errNeither = errors.New("it is neither a file nor a directory")
	errLink    = errors.New("it is a symbolic link")
)

// openFolder is open for a directory: with its flags the kernel opens nothing else.
func openFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		if info, statErr := os.Lstat(path); statErr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, errLink
		}
		return nil, errors.New("it is not a directory")
	}
	if err != nil {
		return nil, reason(err)
	}
	return f, nil
}

// reason removes the path, which the caller names anyway.
func reason(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		if errors.Is(pathErr.Err, syscall.ELOOP) {
			return errLink
		}
		return pathErr.Err
	}
	return err
}

// is reports whether the target's name belongs to an open file.
func (t target) is(f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := t.stat()
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
