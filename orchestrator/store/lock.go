package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"heartbeat/hook/flock"
)

// Lock is a fleet's lock: its holder alone writes the fleet's store, and makes, migrates and
// restores it. It ends with the process.
type Lock struct {
	dir    string
	unlock func() error
}

// lockName is the file beside the store whose lock it is.
const lockName = "heartbeat.lock"

// Take takes the lock of the fleet in a state directory, which must exist, and waits for it
// until ctx ends. Then the error is a *HeldError; it is a *NetworkError where no store can be
// kept. That is asked first: a server of NFS that has just started has each lock waited for, for
// 90 s and whatever ctx says.
func Take(ctx context.Context, dir string) (*Lock, error) {
	if err := mayHold(dir); err != nil {
		return nil, err
	}
	unlock, err := flock.Lock(ctx, filepath.Join(dir, lockName))
	if errors.Is(err, flock.ErrHeld) {
		return nil, &HeldError{Dir: dir, PID: flock.Holder(filepath.Join(dir, lockName))}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the fleet's store in %q: %w", dir, err)
	}
	return &Lock{dir, unlock}, nil
}

// Held reports whether somebody has the lock of the fleet in a state directory.
func Held(dir string) bool { return flock.Held(filepath.Join(dir, lockName)) }

// HeldError means that another heartbeat has a fleet's lock.
type HeldError struct {
	Dir string // the state directory
	PID int    // 0: not known
}

// Error says who has it.
func (e *HeldError) Error() string {
	who := "another heartbeat"
	if e.PID > 0 {
		who += fmt.Sprintf(" (process %d)", e.PID)
	}
	return fmt.Sprintf("cannot lock the fleet's store in %q: %s runs the fleet", e.Dir, who)
}

// Hint says what to do.
func (e *HeldError) Hint() string {
	return "heartbeat stop ends the other one; a fleet has one scheduler"
}

// Release ends it.
func (l *Lock) Release() error { return l.unlock() }
