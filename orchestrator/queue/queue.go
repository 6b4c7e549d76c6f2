// Package queue has all operations on an agent's queue except those of hooks: looking into
// it, recovering an entry whose session is gone, freeing disk space, and what a person does by
// hand, such as dropping entries, and retrying or deleting dead letters. Each operation takes
// the locks that it needs, and returns an error if somebody else holds one. None decides
// anything about the agent.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
)

// lockWait is how long an operation waits for the hook lock. Hooks hold it for
// milliseconds.
const lockWait = 5 * time.Second

// Open opens an agent's queue for reading and appending.
func Open(a *config.Agent) (*inbox.Queue, error) { return inbox.Open(place(a)) }

// Read calls do with an agent's queue, whose reads end with ctx. If the queue does not exist yet,
// do is not called, and the error is nil.
func Read(ctx context.Context, a *config.Agent, do func(*inbox.Queue) error) error {
	q, err := Open(a)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer q.Close()
	q.Within(ctx)
	return do(q)
}

func place(a *config.Agent) inbox.Place {
	return inbox.Place{Inbox: a.Inbox, Home: a.Home, Dir: a.Dir, MaxEntry: a.MaxEntry}
}

// BusyError means that somebody else holds a lock.
type BusyError struct{ why, hint string }

// Error says who.
func (e *BusyError) Error() string { return e.why }

// Hint says what to do.
func (e *BusyError) Hint() string { return e.hint }

// livesThere says who has the session lock beside an inbox, as far as the system tells:
// nothing that the agent has written is advice to kill by.
func livesThere(cannot, path string) *BusyError {
	e := &BusyError{cannot + ": a session lives there", "wait until it has ended"}
	pid := flock.Holder(filepath.Join(filepath.Dir(path), inbox.SessionLock))
	if pid == 0 {
		return e
	}
	e.why += process.Numbered(pid)
	if halt := process.HaltOf(pid, process.StateOf(pid)); halt.By != "" {
		e.why += ", and " + halt.By + " has stopped it"
		e.hint = halt.Do + ", then " + e.hint
	}
	return e
}

// locked calls act with the hook lock held.
func locked(ctx context.Context, p inbox.Place, act func(*inbox.Held) error) (err error) {
	q, err := inbox.Open(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return q.Hold(ctx, act)
}

// Settle gives the entries of a queue that nobody has worked on yet permanent
// delivery ids, so that they can be named.
func Settle(ctx context.Context, a *config.Agent) error {
	q, err := Open(a)
	if err != nil {
		return err
	}
	defer q.Close()
	if settled, err := q.Settled(); settled || err != nil {
		return err
	}
	return locked(ctx, place(a), (*inbox.Held).Settle)
}

// Drop removes entries that are queued or set aside from an agent's queue, by their id
// or delivery id, and files them as dead letters. It is all or nothing: for an id that is not
// queued the error matches inbox.ErrNotFound, for an entry in flight it is a
// *BusyError.
func Drop(ctx context.Context, a *config.Agent, ids []string) (dropped int, err error) {
	err = locked(ctx, place(a), func(q *inbox.Held) error {
		if err := q.Settle(); err != nil {
			return err
		}
		entries, err := q.List(wholeQueue)
		if err != nil {
			return err
		}
		waiting, err := q.Waiting()
		if err != nil {
			return err
		}
		flight, err := q.Peek()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if flight != nil && id != "" && (flight.ID == id || flight.DeliveryID == id) {
				return flying(a, id, flight.State, q.SessionLives())
			}
			if !slices.ContainsFunc(entries, func(e inbox.Entry) bool { return e.ID == id || e.DeliveryID == id }) &&
				!slices.ContainsFunc(waiting, func(f inbox.InFlight) bool { return f.ID == id || f.DeliveryID == id }) {
				return fmt.Errorf("cannot drop %q: %w", id, inbox.ErrNotFound)
			}
		}
		dropped, err = q.DropQueued(ids...)
		return err
	})
	return dropped, err
}

// flying returns the error for dropping the entry in flight.
func flying(a *config.Agent, id string, s inbox.State, lives bool) error {
	e := &BusyError{why: fmt.Sprintf("cannot drop %q: it is in flight (%s)", id, s)}
	if s == inbox.Checking {
		e.hint = fmt.Sprintf("its check goes on without its session; heartbeat cancel %s gives it up", a.Name)
	} else if lives {
		e.hint = fmt.Sprintf("it ends with the session's turn, which heartbeat attach %s joins", a.Name)
	} else {
		e.hint = fmt.Sprintf("its session is gone: heartbeat run deals with it by on-orphan, heartbeat recover %s does so now", a.Name)
	}
	return e
}

// wholeQueue is more entries than any queue has.
const wholeQueue = math.MaxInt

// Retry queues dead letters again, by their id, delivery id or entry id, or all of
// them, and returns how many, and what those say. They go to the end of the queue. Those
// that cannot be queued again stay, and the error names them.
func Retry(ctx context.Context, a *config.Agent, ids []string, all bool) (n int, again []inbox.Letter, err error) {
	err = locked(ctx, place(a), func(q *inbox.Held) error {
		if ids, again, err = chosen(q, ids, all); err != nil {
			return err
		}
		n, err = q.RetryDead(ids...)
		return err
	})
	if n == 0 {
		again = nil
	}
	return n, again, err
}

// Purge deletes dead letters, named as for Retry, and returns how many.
func Purge(ctx context.Context, a *config.Agent, ids []string, all bool) (n int, err error) {
	err = locked(ctx, place(a), func(q *inbox.Held) error {
		if ids, _, err = chosen(q, ids, all); err != nil {
			return err
		}
		n, err = q.PurgeDead(func(d inbox.DeadEntry) bool {
			return all || slices.ContainsFunc(ids, d.Named)
		})
		return err
	})
	return n, err
}

// chosen checks that each id names a dead letter; with all it returns those of all of
// them. again is what the chosen ones say that can be queued again.
func chosen(q *inbox.Held, ids []string, all bool) (names []string, again []inbox.Letter, err error) {
	missing := slices.Clone(ids)
	var every []string
	for d, err := range q.DeadLetters() {
		if err != nil {
			return nil, nil, err
		}
		missing = slices.DeleteFunc(missing, d.Named)
		every = append(every, cmp.Or(d.DeliveryID, d.EntryID))
		if d.Retryable() && (all || slices.ContainsFunc(ids, d.Named)) {
			again = append(again, d.Letter())
		}
	}
	if len(missing) > 0 {
		return nil, nil, fmt.Errorf("cannot find dead letter %q: %w", missing[0], inbox.ErrNotFound)
	}
	if all {
		return every, again, nil
	}
	return ids, again, nil
}
