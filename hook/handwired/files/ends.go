package files

import (
	"errors"
	"fmt"

	"heartbeat/hook/durable"
)

// Which entries have ended is known without the cursor: one is done when the outbox has its
// record, and given up when it is a dead letter. Both are written before the position moves, and
// the sidecar before the cursor. So if cursor and sidecar disagree, because a step was
// interrupted or somebody has written one of them, the ends of the entries in between decide.

// ends is what the outbox and the dead letters know, read when first needed.
type ends struct {
	r     *Reader
	known map[string]bool // :: delivery id → it has ended
}

// has reports whether a delivery has ended. An interrupted acknowledgement needs only the last
// record.
func (e *ends) has(delivery string) (bool, error) {
	if e.known == nil {
		if last, err := e.r.isDelivered(delivery); last || err != nil {
			return last, err
		}
		if err := e.read(); err != nil {
			return false, err
		}
	}
	return e.known[delivery], nil
}

// of is has for a line, which the record in flight may know by an older delivery id.
func (e *ends) of(l line, delivery string, f *flight) (bool, error) {
	ended, err := e.has(delivery)
	if err == nil && !ended && f.isHere() && f.StartOffset == l.start {
		return e.has(f.DeliveryID)
	}
	return ended, err
}

func (e *ends) read() error {
	known := map[string]bool{}
	for delivery := range e.r.Aside {
		known[delivery] = true
	}
	err := e.r.Deliveries(func(d Delivery) bool { known[d.DeliveryID] = true; return true })
	if err == nil || errors.Is(err, durable.ErrNotRegular) { // what is damaged is set aside when something is written
		err = e.r.DeadLetters(func(d Dead) bool { known[d.DeliveryID] = true; return true })
	}
	if err == nil || errors.Is(err, durable.ErrNotRegular) {
		e.known, err = known, nil
	}
	return err
}

// doneUpTo returns how far [from, to) is done: where the first entry stands that has no end, or,
// with late, where the last one ends that has an end. What ends is in order: older records may be
// rotated away, or dead letters deleted. A line that has to become a dead letter counts as an entry.
func (r *Reader) doneUpTo(s *source, from, to, generation int64, f *flight, late bool) (at int64, err error) {
	if s.file == nil || from >= to {
		return to, nil
	}
	at = to
	if late {
		at = from
	}
	e := ends{r: r}
	for l := linesOf(s.file, from, min(to, s.size), r.maxEntry, mostLines); ; {
		got, err := l.read()
		if err != nil {
			return at, ignoreEOF(err)
		}
		delivery := ""
		if e := r.entry(got, generation); e != nil {
			delivery = e.DeliveryID
		} else if dead, is := r.deadLine(got, false, generation); is {
			delivery = dead.DeliveryID
		} else {
			continue
		}
		switch ended, err := e.of(got, delivery, f); {
		case err != nil:
			return at, err
		case ended && late:
			at = got.end
		case !ended && !late:
			return got.start, nil
		}
	}
}

// settleBetween decides where the queue goes on whose sidecar says something else than its
// cursor, about the same file.
func (r *Reader) settleBetween(s *source, c cursor, m *sidecar, f *flight) (p position, err error) {
	from, to := min(c.value, m.Cursor), max(c.value, m.Cursor)
	if f.isHere() && c.value <= f.StartOffset && m.Cursor == f.EndOffset {
		to = f.StartOffset // what ends it was interrupted: whoever repeats that finds it in flight
		if first, err := r.firstEntry(s, c.value, m.Generation); err != nil || first != nil && first.Start == to {
			return position{cursor: c.value, sidecar: *m}, err
		}
	}
	from = max(from, min(m.Punched, to))
	p = position{sidecar: *m}
	// Either the sidecar is older, after a power cut, or a step was interrupted.
	p.cursor, err = r.doneUpTo(s, from, to, m.Generation, f, c.value < m.Cursor)
	if errors.Is(err, ErrTooMuch) {
		return p, fmt.Errorf("%w: %q and %q disagree about how far %q is done, and there is too much in between to tell",
			ErrNeedsOperator, r.lane.Cursor, r.lane.Sidecar, r.path)
	}
	if err != nil {
		return p, err
	}
	if p.cursor != m.Cursor {
		p.sidecar, p.changed = s.note(*m, p.cursor, nil), true
	}
	if p.moved = p.cursor != c.value; p.moved {
		p.note = fmt.Sprintf("the cursor was at %d, the entries that have ended reach to %d; going on there", c.value, p.cursor)
	}
	return p, nil
}

// isForeign reports whether the record in flight is of an entry that cannot have been handed
// over: one before it has no end.
func (r *Reader) isForeign(s *source, p position, f *flight) (bool, error) {
	if !f.isHere() || f.StartOffset <= p.cursor {
		return false, nil
	}
	at, err := r.doneUpTo(s, p.cursor, f.StartOffset, p.sidecar.Generation, nil, false)
	return at < f.StartOffset, err
}
