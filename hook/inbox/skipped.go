package inbox

import "time"

// fronts returns for each lane where the lines that are not done begin.
func (q *Queue) fronts() (all []Front) {
	for _, l := range q.lanes() {
		v, err := l.look()
		if err != nil {
			all = append(all, Front{Urgent: l.urgent, From: -1})
			continue
		}
		all = append(all, l.front(v))
		v.close()
	}
	return all
}

func (q *lane) front(v *view) Front {
	return Front{q.urgent, v.source.ino, v.verdict.meta.Generation, v.verdict.cursor}
}

// Gap is what Skipped finds.
type Gap struct {
	// Dead are the entries that were passed although they had not ended.
	Dead []DeadEntry
	// Back is true if a lane was set back: entries that have ended would be handed over
	// again.
	Back bool
	// now are the fronts. For a lane that was set back it is the front of before.
	now []Front
}

// Skipped returns, as dead letters (Lost), the entries that the queue has passed since a mark
// although they have not ended. Moving both cursor and sidecar leaves no other trace. done are
// the outbox records after the mark that count; doubts, if it is not nil, says which other
// records do not. Skipped needs no lock and changes nothing; FileSkipped acts on the result.
//
// The entries are filed and not put back into the queue, because the entries behind them that
// were handed over since would then be handed over again.
func (q *Queue) Skipped(m *OutboxMark, done []Delivery, doubts func(Delivery) bool) (g Gap, err error) {
	e := ends{q: q, known: map[string]bool{}, doubts: doubts}
	for _, d := range done {
		e.known[d.DeliveryID] = true
	}
	for _, l := range q.lanes() {
		v, err := l.look()
		if err != nil {
			return g, err
		}
		was, now := m.frontOf(l.urgent), l.front(v)
		skipped, err := l.skipped(v, was, &e)
		if err == nil && was.Ino == now.Ino && was.Generation == now.Generation {
			to := max(was.From, now.From)
			if to, err = l.endOf(v.source, stretch{to, v.source.size, now.Generation}, e.known); to > now.From {
				g.Back, now.From = true, to
			}
		}
		v.close()
		g.now, g.Dead = append(g.now, now), append(g.Dead, skipped...)
		if err != nil {
			return g, err
		}
	}
	return g, nil
}

// endOf returns where the done entries at the beginning of a stretch end.
func (q *lane) endOf(s *source, in stretch, done map[string]bool) (at int64, err error) {
	at = in.from
	err = q.eachOf(s, in, func(l line, delivery string, _ *Entry) (bool, error) {
		if !done[delivery] {
			return false, nil
		}
		at = l.end
		return true, nil
	})
	return at, err
}

// frontOf returns the mark's front of a lane. A lane that did not exist then begins at its first
// line.
func (m *OutboxMark) frontOf(urgent bool) Front {
	for _, f := range m.Open {
		if f.Urgent == urgent {
			return f
		}
	}
	return Front{Urgent: urgent}
}

// skipped returns the entries between a front and the present one that have not ended. Entries of
// an inbox that another file replaced are reported elsewhere, when that is detected.
func (q *lane) skipped(v *view, was Front, e *ends) (dead []DeadEntry, err error) {
	now := q.front(v)
	if was.From < 0 || was.Ino != 0 && was.Ino != now.Ino {
		return nil, nil
	}
	in := stretch{max(was.From, min(v.verdict.meta.Punched, now.From)), now.From, now.Generation}
	err = q.eachOf(v.source, in, func(l line, delivery string, entry *Entry) (bool, error) {
		before := q.deliveryID(was.Generation, l.start, l.raw)
		ended := e.known[delivery] || e.known[before]
		if !ended && !e.all { // the queue may have continued since
			if err := e.read(); err != nil {
				return false, err
			}
			ended = e.known[delivery] || e.known[before]
		}
		switch {
		case ended:
		case entry == nil:
			d, _ := q.deadLine(l, false, in.generation)
			dead = append(dead, d)
		default:
			d := deadQueued(entry)
			d.Reason, d.Cause, d.At, d.Urgent = Lost, "the cursor was moved over it", time.Now().UTC(), q.urgent
			dead = append(dead, d)
		}
		return len(dead) < mostLost, nil
	})
	return dead, err
}

// FileSkipped files what Skipped found, moves a lane that was set back forward again, and
// advances the mark. A second call files nothing more.
func (h *Held) FileSkipped(m *OutboxMark, g Gap) error {
	if err := h.check(); err != nil {
		return err
	}
	if err := h.file(g.Dead); err != nil {
		return err
	}
	if n := len(g.Dead); n > 0 {
		h.note("the cursor was moved over %d entries that have no end; they are dead letters", n)
	}
	m.Moves(g)
	for _, l := range h.lanes() {
		if !g.Back {
			break
		}
		if err := l.forward(m.frontOf(l.urgent)); err != nil {
			return err
		}
	}
	return nil
}

// Nothing reports whether there is nothing to do about a gap.
func (g Gap) Nothing() bool { return len(g.Dead) == 0 && !g.Back }

// Moves sets the mark to where the queue was when Skipped was called.
func (m *OutboxMark) Moves(g Gap) { m.Open = g.now }

func (h *heldLane) forward(was Front) error {
	v, err := h.settle()
	if err != nil {
		return err
	}
	defer v.close()
	now := h.front(v)
	if now.Ino != was.Ino || now.Generation != was.Generation || now.From >= was.From || was.From > v.source.size || !v.source.startsLine(was.From) {
		return nil
	}
	h.note("the cursor was set back from %d to %d; what stands in between has ended", was.From, now.From)
	if f := v.flight; f != nil && f.here && f.EndOffset <= was.From {
		if err := h.clearFlight(); err != nil {
			return err
		}
	}
	if err := h.advance(v, was.From, nil); err != nil {
		return err
	}
	return h.dir.Sync()
}
