package inbox

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// Held is a queue whose hook lock is held; its methods are the only ones that
// change the queue's state. The lock belongs to the folder, and so do its one entry
// in flight, its cursor, its dead letters and its outbox: inboxes that share a
// folder share them.
//
// After the lock is released, the methods change nothing and return an error: what
// was read under the lock may no longer be true.
type Held struct {
	*Queue
	unlock func() error // nil once it was called
	// unfinished is why what was begun could not be finished yet, or nil.
	unfinished error
}

// errReleased means that the caller has released the lock.
var errReleased = errors.New("cannot change the queue: its hook lock was given back")

// Lock takes the hook lock (.hook-lock, an flock). It waits until ctx ends. Then it
// finishes what a killed process has begun.
func (q *Queue) Lock(ctx context.Context) (*Held, error) {
	unlock, err := flock.LockIn(ctx, q.dir, HookLock)
	if err != nil {
		return nil, err
	}
	h := &Held{Queue: q, unlock: unlock}
	if err := h.finish(); err != nil {
		return nil, errors.Join(err, h.Unlock())
	}
	return h, nil
}

// Hold runs act while it holds the hook lock. It waits for the lock until ctx ends.
func (q *Queue) Hold(ctx context.Context, act func(*Held) error) error {
	h, err := q.Lock(ctx)
	if err != nil {
		return err
	}
	err = act(h)
	return errors.Join(err, h.Unlock())
}

// Unlock releases the lock; a second call does nothing.
func (h *Held) Unlock() error {
	unlock := h.unlock
	if h.unlock = nil; unlock == nil {
		return nil
	}
	return unlock()
}

// check is called first by every method of Held that may change something.
func (h *Held) check() error {
	if h.unlock == nil {
		return errReleased
	}
	return nil
}

// LockSession takes the session lock. It waits until ctx ends.
func (q *Queue) LockSession(ctx context.Context) (unlock func() error, err error) {
	return flock.LockIn(ctx, q.dir, SessionLock)
}

// SessionLives reports whether somebody holds the session lock.
func (q *Queue) SessionLives() bool { return SessionLivesIn(q.dir) }

// SessionLivesIn is Queue.SessionLives for a caller that has the inbox's folder
// open.
func SessionLivesIn(beside *durable.Folder) bool { return flock.HeldIn(beside, SessionLock) }

// Orphaned is a queue without a session, where none can start because the session
// lock is held too. Its entry in flight is an orphan.
type Orphaned struct{ *Held }

// ErrSessionLives means that a session holds the session lock.
var ErrSessionLives = errors.New("a session still lives")

// HoldOrphaned opens a queue whose session is gone, and runs act while it holds the
// session lock and the hook lock. It waits for both until ctx ends; with wait false
// it does not wait for the session lock. When a session still lives, it returns
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
