package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"heartbeat/orchestrator/store"
)

// lookAgain is how often a reader that follows the journal looks for more.
const lookAgain = 200 * time.Millisecond

// page is how many events are read at once: while they are, nothing of the store's log is
// given back.
const page = 2000

// Read returns the events of a fleet's journal, the oldest first. A fleet that has none has
// an empty one. An error is the last thing that it yields.
func Read(stateDir string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := reader{dir: stateDir}
		defer r.close()
		r.each(context.Background(), yield)
	}
}

// LastOf returns the last event of a kind of an agent; known is false if there is none. It
// reads no others.
func LastOf(stateDir, agent string, kind Kind) (last Event, known bool, err error) {
	ctx := context.Background()
	from, err := store.OpenReader(ctx, stateDir)
	if errors.Is(err, store.ErrNone) {
		return last, false, nil
	}
	var body string
	if err == nil {
		err = from.Read(ctx, func(v *store.View) (err error) {
			known, err = v.One(`SELECT body FROM events WHERE agent = $1 AND kind = $2 ORDER BY n DESC LIMIT 1`, []any{agent, string(kind)}, &body)
			return err
		})
		err = errors.Join(err, from.Close())
	}
	if err == nil && known {
		err = json.Unmarshal([]byte(body), &last)
	}
	if err != nil {
		return Event{}, false, fmt.Errorf("cannot read the journal: %w", err)
	}
	return last, known, nil
}

// Follow yields everything that Read does, calls caughtUp, and continues with what
// is added until ctx ends.
func Follow(ctx context.Context, stateDir string, caughtUp func()) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := reader{dir: stateDir}
		defer r.close()
		more := r.each(ctx, yield)
		if more {
			caughtUp()
		}
		for more {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lookAgain):
			}
			more = r.each(ctx, yield)
		}
	}
}

// reader reads a fleet's events, and continues where it stopped.
type reader struct {
	dir  string
	from *store.Reader // nil: not open yet
	last int64         // the number of the last event that was read
}

func (r *reader) close() {
	if r.from != nil {
		_ = r.from.Close() // it was only read
	}
}

// each yields the events that are there now. It returns false when no more are wanted.
func (r *reader) each(ctx context.Context, yield func(Event, error) bool) bool {
	if r.from == nil {
		from, err := store.OpenReader(ctx, r.dir)
		switch {
		case errors.Is(err, store.ErrNone):
			return true
		case ctx.Err() != nil:
			return false
		case err != nil:
			yield(Event{}, fmt.Errorf("cannot read the journal: %w", err))
			return false
		}
		r.from = from
	}
	for {
		events, err := store.Get(ctx, r.from, r.next)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			yield(Event{}, fmt.Errorf("cannot read the journal: %w", err))
			return false
		}
		for _, e := range events {
			if !yield(e, nil) {
				return false
			}
		}
		if len(events) < page {
			return true
		}
	}
}

// next reads a page of events. One that cannot be understood is passed over.
func (r *reader) next(v *store.View) (events []Event, err error) {
	last := r.last
	err = v.Each(`SELECT n, body FROM events WHERE n > $1 ORDER BY n LIMIT $2`, []any{r.last, page}, func(scan store.Scan) error {
		var body string
		if err := scan(&last, &body); err != nil {
			return err
		}
		var e Event
		if json.Unmarshal([]byte(body), &e) != nil {
			e = Event{}
		}
		events = append(events, e)
		return nil
	})
	if err == nil {
		r.last = last
	}
	return events, err
}

// Verified is what a look at all events of a journal has found.
type Verified struct {
	Lines int `json:"lines"`
	// Unsummed are events of versions that wrote no checksum.
	Unsummed int `json:"unsummed"`
	// Damaged are events that are not as they were written, by their numbers: the first 100.
	Damaged []string `json:"damaged"`
	More    int      `json:"more,omitempty"` // of them
}

// maxDamaged bounds how many damaged events are named.
const maxDamaged = 100

// Verify compares each event of a fleet's journal with its checksum, and has the store itself
// looked at. It is no seal: who changes an event on purpose can compute another checksum.
func Verify(ctx context.Context, stateDir string) (Verified, error) {
	v := Verified{Damaged: []string{}}
	r, err := store.OpenReader(ctx, stateDir)
	if errors.Is(err, store.ErrNone) {
		return v, nil
	}
	if err == nil {
		err = r.Check(ctx)
		for last, more := int64(0), true; more && err == nil; {
			err = r.Read(ctx, func(view *store.View) (err error) {
				last, more, err = v.page(view, last)
				return err
			})
		}
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return v, fmt.Errorf("cannot verify the journal: %w", err)
	}
	return v, nil
}

// page looks at some events behind a number, and returns the last one's.
func (v *Verified) page(view *store.View, after int64) (last int64, more bool, err error) {
	last = after
	err = view.Each(`SELECT n, body, crc FROM events WHERE n > $1 ORDER BY n LIMIT $2`, []any{after, page}, func(scan store.Scan) error {
		var body string
		var crc int64
		if err := scan(&last, &body, &crc); err != nil {
			return err
		}
		v.Lines++
		switch {
		case crc == int64(sumOf([]byte(body))):
		case crc == Unsummed:
			v.Unsummed++
		case len(v.Damaged) < maxDamaged:
			v.Damaged = append(v.Damaged, fmt.Sprintf("event %d", last))
		default:
			v.More++
		}
		return nil
	})
	return last, last != after, err
}

// Unsummed stands in the place of the checksum of an event that never had one.
const Unsummed = -1
