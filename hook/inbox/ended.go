package inbox

import (
	"errors"
	"fmt"

	"heartbeat/hook/durable"
)

// Anybody who can write the queue's files can move the queue's position. Which entries have ended
// is known without the cursor: an entry is done when the outbox has its record, and given up when
// it is a dead letter. Both are written before the position moves, and the sidecar before the
// cursor. So if cursor and sidecar disagree, the ends of the entries in between decide how far the
// queue is done.
//
// The position then returns to the first entry that has not ended, and that entry is handed over,
// perhaps again. It is not filed instead, because heartbeat has not ended it. If a session had it,
// it counts as started (Restore), which marks the repeat. Entries that have ended are passed, and
// not handed over a second time.

// ends is what the outbox and the dead letters know, read when first needed.
type ends struct {
	q     *Queue
	known map[string]bool // :: delivery id → done or given up
	all   bool            // both were read
	// doubts says which outbox records do not end their entries; nil: none.
	doubts func(Delivery) bool
}

// has reports whether a delivery has ended. An interrupted acknowledgement needs only
// the last record.
func (e *ends) has(delivery string) (bool, error) {
	if !e.all {
		if last, err := e.q.delivered(delivery); last || err != nil {
			return last, err
		}
		if err := e.read(); err != nil {
			return false, err
		}
	}
	return e.known[delivery], nil
}

// of is like has for a line, which the record in flight may know by an older delivery id.
func (e *ends) of(l line, delivery string, f *flight) (bool, error) {
	ended, err := e.has(delivery)
	if err == nil && !ended && f != nil && f.here && f.StartOffset == l.start {
		return e.has(f.DeliveryID)
	}
	return ended, err
}

func (e *ends) read() error {
	known, err := e.q.passedBy()
	if err != nil {
		return err
	}
	for d, err := range e.q.Deliveries() {
		if errors.Is(err, durable.ErrNotRegular) {
			continue
		}
		if err != nil {
			return err
		}
		if e.doubts == nil || !e.doubts(d) {
			known[d.DeliveryID] = true
		}
	}
	_, err = e.q.eachDead(&Mark{}, mostRecords, func(_ []byte, d *DeadEntry) bool {
		if d != nil {
			known[d.DeliveryID] = true
		}
		return true
	})
	if err == nil || errors.Is(err, durable.ErrNotRegular) { // the damaged file is moved aside when something is filed
		e.known, e.all, err = known, true, nil
	}
	return err
}

// stretch is a part of a lane, of one generation.
type stretch struct {
	from, to   int64
	generation int64
}

// eachOf calls do for each entry in a stretch, and for each line that has to become a
// dead letter, until do returns false.
func (q *lane) eachOf(s *source, in stretch, do func(l line, delivery string, e *Entry) (more bool, err error)) error {
	if s.file == nil || in.from >= in.to {
		return nil
	}
	for l := q.lines(s.file, in.from, min(in.to, s.size), q.maxEntry, mostInbox); ; {
		got, err := l.read()
		if err != nil {
			return ignoreEOF(err)
		}
		e := q.entry(got, in.generation)
		delivery := ""
		if e != nil {
			delivery = e.DeliveryID
		} else if dead, is := q.deadLine(got, false, in.generation); is {
			delivery = dead.DeliveryID
		} else {
			continue
		}
		if more, err := do(got, delivery, e); !more || err != nil {
			return err
		}
	}
}

// firstOpen returns where the first entry of a stretch stands that has no end, or the
// stretch's end.
func (q *lane) firstOpen(s *source, in stretch, f *flight) (at int64, err error) {
	at = in.to
	e := ends{q: q.Queue}
	err = q.eachOf(s, in, func(l line, delivery string, _ *Entry) (bool, error) {
		ended, err := e.of(l, delivery, f)
		if err == nil && !ended {
			at = l.start
		}
		return ended, err
	})
	return at, err
}

// lastEnded returns where the last entry of a stretch ends that has an end, or the
// stretch's beginning. What ends is in order: older records may be rotated away, or
// dead letters deleted.
func (q *lane) lastEnded(s *source, in stretch, f *flight) (at int64, err error) {
	at = in.from
	e := ends{q: q.Queue}
	err = q.eachOf(s, in, func(l line, delivery string, _ *Entry) (bool, error) {
		ended, err := e.of(l, delivery, f)
		if ended {
			at = l.end
		}
		return true, err
	})
	return at, err
}

// disagree decides where the queue continues whose sidecar says something else than
// its cursor, about the same file.
func (q *lane) disagree(s *source, c cursorState, m *meta, f *flight) (v verdict, err error) {
	in := stretch{from: min(c.value, m.Cursor), to: max(c.value, m.Cursor), generation: m.Generation}
	if f != nil && f.here && c.value <= f.StartOffset && m.Cursor == f.EndOffset {
		in.to = f.StartOffset // what ends it was interrupted: whoever repeats that finds it in flight
		if first, err := q.firstEntry(s, c.value, m.Generation); err != nil || first != nil && first.Start == in.to {
			return verdict{cursor: c.value, meta: *m}, err
		}
	}
	in.from = max(in.from, min(m.Punched, in.to))
	v = verdict{meta: *m}
	if c.value > m.Cursor { // the sidecar may be older after a power cut
		v.cursor, err = q.firstOpen(s, in, f)
	} else { // a step was interrupted
		v.cursor, err = q.lastEnded(s, in, f)
	}
	if errors.Is(err, ErrTooMuch) {
		return v, fmt.Errorf("%w: %q and %q disagree about how far %q is done, and there is too much in between to tell",
			ErrNeedsOperator, q.cursor, q.meta, q.path)
	}
	if err != nil {
		return v, err
	}
	if v.cursor != m.Cursor {
		v.meta, v.changed = s.note(*m, v.cursor, nil), true
	}
	if v.moved = v.cursor != c.value; v.moved {
		v.note = fmt.Sprintf("the cursor was at %d, the entries that have ended reach to %d; going on there", c.value, v.cursor)
	}
	return v, nil
}

// foreignFlight reports whether the record in flight is of an entry that cannot have
// been handed over: one before it has no end.
func (q *lane) foreignFlight(s *source, v verdict, f *flight) (bool, error) {
	if f == nil || !f.here || f.StartOffset <= v.cursor {
		return false, nil
	}
	at, err := q.firstOpen(s, stretch{v.cursor, f.StartOffset, v.meta.Generation}, nil)
	return at < f.StartOffset, err
}
