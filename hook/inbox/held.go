package inbox

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// Held is a queue while its hook lock is held, and all that may change its state.
// The lock is of the folder, as are its one entry in flight, its cursor, its dead
// letters and its outbox: inboxes that share a folder share them.
//
// Once the lock was given back its methods change nothing and return an error:
// what was read under it may not be true any more.
type Held struct {
	*Queue
	unlock func() error // nil once it was called
}

// errReleased means that the caller has given the lock back.
var errReleased = errors.New("cannot change the queue: its hook lock was given back")

// Lock takes the hook lock (.hook-lock, an flock). It waits until ctx ends.
func (q *Queue) Lock(ctx context.Context) (*Held, error) {
	unlock, err := flock.LockIn(ctx, q.dir, HookLock)
	if err != nil {
		return nil, err
	}
	return &Held{Queue: q, unlock: unlock}, nil
}

// Hold runs act with the hook lock held. It waits for that until ctx ends.
func (q *Queue) Hold(ctx context.Context, act func(*Held) error) error {
	h, err := q.Lock(ctx)
	if err != nil {
		return err
	}
	err = act(h)
	return errors.Join(err, h.Unlock())
}

// Unlock gives the lock back; called again it does nothing.
func (h *Held) Unlock() error {
	unlock := h.unlock
	if h.unlock = nil; unlock == nil {
		return nil
	}
	return unlock()
}

// check is how each method of Held that may change something begins.
func (h *Held) check() error {
	if h.unlock == nil {
		return errReleased
	}
	return nil
}

// LockSession takes the lock of a live session, waiting until ctx ends.
func (q *Queue) LockSession(ctx context.Context) (unlock func() error, err error) {
	return flock.LockIn(ctx, q.dir, SessionLock)
}

// SessionLives reports whether somebody holds the lock of a live session.
func (q *Queue) SessionLives() bool { return SessionLivesIn(q.dir) }

// SessionLivesIn is Queue.SessionLives for who has opened the inbox's folder.
func SessionLivesIn(beside *durable.Folder) bool { return flock.HeldIn(beside, SessionLock) }

// Orphaned is a queue without a session, and none can begin: the session's lock
// is held, too. What is in flight is an orphan.
type Orphaned struct{ *Held }

// ErrSessionLives means that a session holds its lock.
var ErrSessionLives = errors.New("a session still lives")

// HoldOrphaned opens a queue whose session is gone, and runs act with the locks
// of the session and of the hooks held. It waits for both until ctx ends;
// without wait it does not wait for a session that lives. In either case that is
// ErrSessionLives.
func HoldOrphaned(ctx context.Context, p Place, wait bool, act func(Orphaned) error) (err error) {
	q, err := Open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	lock := func() (func() error, error) { return flock.TryLockIn(q.dir, SessionLock) }
	if wait {
		lock = func() (func() error, error) { return q.LockSession(ctx) }
	}
	unlock, err := lock()
	if errors.Is(err, flock.ErrHeld) {
		return fmt.Errorf("%w: %w", ErrSessionLives, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return q.Hold(ctx, func(h *Held) error { return act(Orphaned{h}) })
}
