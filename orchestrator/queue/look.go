package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// lookAhead limits how many bytes of a queue are counted to find out whether work
// is queued.
const lookAhead = 2 << 20

// Look is the result of a look into a queue. The zero value is that of a queue that does not
// exist yet.
type Look struct {
	Depth inbox.Depth
	// Err says why the queue could not be read.
	Err error
	// Stamp is the inbox's, from before the look.
	Stamp Stamp
}

// LookInto finds out whether anything is queued for an agent, or in flight. Entries that were
// taken out of its inbox become dead letters (inbox.Lost).
func LookInto(a *config.Agent) Look {
	l := Look{Stamp: stampOf(a.Inbox)}
	l.Err = Read(context.Background(), a, func(q *inbox.Queue) (err error) {
		if l.Depth, err = q.Depth(lookAhead); err != nil || l.Depth.Disturbed == "" {
			return err
		}
		if err := locked(context.Background(), place(a), (*inbox.Held).Settle); err != nil {
			return err
		}
		l.Depth, err = q.Depth(lookAhead)
		return err
	})
	return l
}

// Stamp tells whether an inbox, the urgent entries beside it, or what is in flight, have
// changed since a look into them, at a hundredth of the cost of a look. The zero value
// belongs to no look.
type Stamp []durable.Stamp

// Still reports whether nothing of the inbox at path demonstrably has changed since the
// look that the stamp belongs to.
func (s Stamp) Still(path string) bool {
	return slices.EqualFunc(s, stampOf(path), durable.Stamp.Same)
}

func stampOf(path string) Stamp {
	return stampsOf(append(inbox.FlightFiles(path), path, inbox.Urgent(path))...)
}

func stampsOf(paths ...string) (all []durable.Stamp) {
	for _, path := range paths {
		all = append(all, durable.StampOf(os.Lstat(path)))
	}
	return all
}

// Taken reports whether the inbox at path has a record of an entry in flight, at a fraction
// of the cost of a look.
func Taken(path string) bool {
	return slices.ContainsFunc(inbox.FlightFiles(path), func(file string) bool {
		_, err := os.Lstat(file)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// Trail tells whether the files of a queue have changed in which its entries stand, or end
// without a verdict.
type Trail []durable.Stamp

// TrailOf returns that of an agent's queue.
func TrailOf(a *config.Agent) Trail {
	return stampsOf(a.Inbox, inbox.Urgent(a.Inbox), inbox.DeadLetterFile(a.Inbox))
}

// Same reports whether the files demonstrably have not changed until a later one.
func (t Trail) Same(later Trail) bool { return slices.EqualFunc(t, later, durable.Stamp.Same) }

// Obstacles are the files of an agent's queue that cannot be read. Of a queue that cannot
// be opened at all whoever opens it says so.
func Obstacles(a *config.Agent) []inbox.Obstacle {
	q, err := Open(a)
	if err != nil {
		return nil
	}
	defer q.Close()
	return q.Obstacles()
}

// RequestsOf returns what carries out the requests of an agent's session, by its id.
func RequestsOf(a *config.Agent, session string) *inbox.Requests {
	return inbox.RequestsOf(place(a), session)
}

// InFlight returns the entry in flight, or nil.
func InFlight(a *config.Agent) (flight *inbox.InFlight, err error) {
	err = Read(context.Background(), a, func(q *inbox.Queue) (err error) {
		flight, err = q.Peek()
		return err
	})
	return flight, err
}

// FirstText returns what a session that starts now is handed over first, where that may be longer
// than bytes; "" for nothing.
func FirstText(a *config.Agent, longer int64) (string, error) {
	may := slices.ContainsFunc([]string{a.Inbox, inbox.Urgent(a.Inbox)}, func(name string) bool {
		info, err := os.Lstat(name)
		return err == nil && (info.Size() > longer || !info.Mode().IsRegular())
	})
	if !may {
		return "", nil
	}
	q, err := Open(a)
	if err != nil {
		return "", err
	}
	defer q.Close()
	f, err := q.Peek()
	if err != nil {
		return "", err
	}
	if f != nil {
		return handover.Whole(f.Given()), nil
	}
	next, err := q.List(1)
	if len(next) == 0 || err != nil {
		return "", err
	}
	return next[0].Prompt, nil
}

// Holds reports whether an entry whose id begins with prefix is in flight or among
// the first 10,000 that are queued. If empty is true, nothing is queued, and only
// the entry in flight is checked.
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

// mostAhead limits how many entries Ahead reads.
const mostAhead = 1000

// Ahead counts the entries before the one with an id, including the one in flight;
// inFlight is true if that is the one. For an entry that is not queued, or is
// behind very many, it returns how many it has read.
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

// CompleteTail lets the queue complete a line whose writer stopped without a newline. Other
// users of the queue do that, too.
func CompleteTail(a *config.Agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	q, err := Open(a)
	if err != nil {
		return nil // the next look reports it
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

// Append queues a prompt, like inbox.Queue.Append. The agent's max-queue limits the queue, unless
// the letter has a limit of its own.
func Append(ctx context.Context, a *config.Agent, l inbox.Letter) (id string, err error) {
	q, err := Open(a)
	if err != nil {
		return "", err
	}
	defer q.Close()
	l.Most = cmp.Or(l.Most, a.MaxQueue)
	return q.Append(ctx, l)
}

// filingWait limits the wait for the hook lock before a dead letter is filed.
const filingWait = 10 * time.Second

// FileTooLarge files a prompt that Append refused as inbox.ErrTooLarge as a dead letter.
func FileTooLarge(ctx context.Context, a *config.Agent, l inbox.Letter) error {
	return file(ctx, a, "that is too large", func(h *inbox.Held) error { return h.FileTooLarge(l) })
}

// FileTaken files a prompt that Append refused as inbox.ErrDuplicate as a dead letter, because
// its id belongs to another prompt.
func FileTaken(ctx context.Context, a *config.Agent, l inbox.Letter) error {
	return file(ctx, a, "whose id is taken", func(h *inbox.Held) error { return h.FileTaken(l) })
}

// file files a prompt as a dead letter, which is described for messages.
func file(ctx context.Context, a *config.Agent, described string, as func(*inbox.Held) error) error {
	q, err := Open(a)
	if err != nil {
		return err
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(ctx, filingWait)
	defer cancel()
	if err := q.Hold(ctx, as); err != nil {
		return fmt.Errorf("cannot file a prompt of agent %q %s: %w", a.Name, described, err)
	}
	return nil
}

// Differs reports whether a prompt's id was accepted before with another text. known is false if
// that can no longer be determined.
func Differs(ctx context.Context, a *config.Agent, id, prompt string) (differs, known bool, err error) {
	err = Read(ctx, a, func(q *inbox.Queue) error {
		before, found, err := q.AcceptedAs(id)
		known, differs = found, found && !SameText(before, prompt)
		return err
	})
	return differs, known, err
}

// WasSent reports whether the entry that was accepted with the id of a letter is that letter,
// which fell due at a time. If the entry's line is gone, an entry from the same sender that was
// handed over after that time counts as the letter.
func WasSent(ctx context.Context, a *config.Agent, l inbox.Letter, due time.Time) (bool, error) {
	differs, known, err := Differs(ctx, a, l.ID, l.Prompt)
	if known || err != nil {
		return !differs, err
	}
	err = Read(ctx, a, func(q *inbox.Queue) error {
		_, err := q.FindDelivery(l.ID, func(d inbox.Delivery) bool { return d.Source == l.Source && !d.DeliveredAt.Before(due) })
		return err
	})
	if errors.Is(err, inbox.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// reclaimWait limits the wait for the hook lock.
const reclaimWait = time.Second

// Reclaim frees the disk space of acknowledged entries. A session may live. again
// is true if there is more to free later.
func Reclaim(a *config.Agent) (again bool, err error) {
	q, err := Open(a)
	if err != nil {
		return false, fmt.Errorf("cannot free disk space: %w", err)
	}
	defer q.Close()
	if !q.Reclaimable() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), reclaimWait)
	defer cancel()
	err = q.Hold(ctx, (*inbox.Held).Reclaim)
	switch {
	case errors.Is(err, inbox.ErrNeedsOperator):
		return false, nil // the next hand-over reports it
	case err != nil:
		err = fmt.Errorf("cannot free disk space: %w", err)
	}
	return q.Reclaimable(), err
}
