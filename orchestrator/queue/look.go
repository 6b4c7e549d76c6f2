package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// lookAhead bounds how many bytes of a queue are counted where it is only asked
// whether work is queued.
const lookAhead = 2 << 20

// Look is what a look into a queue found. The zero value is that of a queue that
// nobody has put anything into yet.
type Look struct {
	Depth inbox.Depth
	// Err says why the queue could not be read.
	Err error
	// Stamp is that of the inbox before the look.
	Stamp Stamp
}

// LookInto looks whether anything is queued for an agent, or in flight.
func LookInto(a *config.Agent) Look {
	l := Look{Stamp: stampOf(a.Inbox)}
	l.Err = Read(context.Background(), a, func(q *inbox.Queue) (err error) {
		l.Depth, err = q.Depth(lookAhead)
		return err
	})
	return l
}

// Stamp tells whether an inbox was changed since it was looked into, at a
// hundredth of the cost of a look. The zero value is that of no inbox that was
// looked into.
type Stamp struct{ inbox durable.Stamp }

// Still reports whether the inbox at path demonstrably has not changed since the
// look that the stamp is of.
func (s Stamp) Still(path string) bool { return s.inbox.Same(stampOf(path).inbox) }

func stampOf(path string) Stamp { return Stamp{durable.StampOf(os.Lstat(path))} }

// InFlight returns the entry in flight, or nil.
func InFlight(a *config.Agent) (flight *inbox.InFlight, err error) {
	err = Read(context.Background(), a, func(q *inbox.Queue) (err error) {
		flight, err = q.Peek()
		return err
	})
	return flight, err
}

// Holds reports whether an entry whose id begins with prefix is in flight or
// among the first 10,000 that are queued. Where empty is true nothing is queued,
// and only what is in flight is asked for.
func Holds(a *config.Agent, prefix string, empty bool) (bool, error) {
	q, err := Open(a)
	if err != nil {
		return false, err
	}
	defer q.Close()
	flight, err := q.Peek()
	if err != nil || empty || flight != nil && strings.HasPrefix(flight.ID, prefix) {
		return flight != nil && strings.HasPrefix(flight.ID, prefix), err
	}
	entries, err := q.List(10_000)
	return slices.ContainsFunc(entries, func(e inbox.Entry) bool { return strings.HasPrefix(e.ID, prefix) }), err
}

// mostAhead bounds how many entries Ahead looks at.
const mostAhead = 1000

// Ahead counts the entries that come before the one with an id, the one in flight
// included; inFlight is true when it is that one. Of an entry that is not queued,
// or behind very many, it says how many of them it has looked at.
func Ahead(a *config.Agent, id string) (n int, inFlight bool, err error) {
	q, err := Open(a)
	if err != nil {
		return 0, false, err
	}
	defer q.Close()
	flight, err := q.Peek()
	if err != nil || flight != nil && flight.ID == id {
		return 0, err == nil, err
	}
	entries, err := q.List(mostAhead)
	if n = slices.IndexFunc(entries, func(e inbox.Entry) bool { return e.ID == id }); n < 0 {
		n = len(entries)
	}
	if flight != nil {
		n++
	}
	return n, false, err
}

// CompleteTail lets the queue complete a line whose writer has gone quiet without
// a newline. Who is at the queue meanwhile does that as well.
func CompleteTail(a *config.Agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	q, err := Open(a)
	if err != nil {
		return nil // the next look says so
	}
	defer q.Close()
	held, err := q.Lock(ctx)
	if err != nil {
		return nil
	}
	defer held.Unlock()
	if _, err := held.Next(); !errors.Is(err, inbox.ErrEmpty) {
		return err
	}
	return nil
}

// Append queues a prompt, as inbox.Queue.Append does.
func Append(ctx context.Context, a *config.Agent, l inbox.Letter) (id string, err error) {
	q, err := Open(a)
	if err != nil {
		return "", err
	}
	defer q.Close()
	return q.Append(ctx, l)
}

// filingWait bounds the wait for the hook lock before a dead letter is filed.
const filingWait = 10 * time.Second

// FileTooLarge makes a dead letter of a prompt that Append refused as
// inbox.ErrTooLarge.
func FileTooLarge(ctx context.Context, a *config.Agent, l inbox.Letter) error {
	q, err := Open(a)
	if err != nil {
		return err
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(ctx, filingWait)
	defer cancel()
	err = q.Hold(ctx, func(h *inbox.Held) error { return h.FileTooLarge(l) })
	if err != nil {
		return fmt.Errorf("cannot file a prompt of agent %q that is too large: %w", a.Name, err)
	}
	return nil
}

// reclaimWait bounds the wait for the hook lock.
const reclaimWait = time.Second

// Reclaim gives the disk space of acknowledged entries back. A session may live.
// again is true when there is more to give back later.
func Reclaim(a *config.Agent) (again bool, err error) {
	q, err := Open(a)
	if err != nil {
		return false, fmt.Errorf("cannot give disk space back: %w", err)
	}
	defer q.Close()
	if !q.Reclaimable() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), reclaimWait)
	defer cancel()
	if err = q.Hold(ctx, (*inbox.Held).Reclaim); err != nil {
		err = fmt.Errorf("cannot give disk space back: %w", err)
	}
	return q.Reclaimable(), err
}
