package files

import (
	"fmt"

	"heartbeat/queue"
	form "heartbeat/queue/line"
)

// InFlight returns the entry in flight, or nil. A record that the cursor has passed (the entry was
// acknowledged, but removing the record was interrupted) is removed; a damaged one is set aside,
// and the entry at the cursor counts as offered without proof.
func (h *Held) InFlight() (*Record, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return v.InFlight(), nil
}

// Offer records e as in flight and offered. When it returns nil, the record is durable and the
// entry may be handed over. Its attempts go on from its earlier hand-overs. It fails while another
// entry is in flight (ErrInFlight), and when e does not stand in the inbox any more. After an
// error the entry is queued as before, as far as the disk allows.
func (h *Held) Offer(e *Entry, o Offering) (*Record, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	if v.flight != nil {
		return nil, fmt.Errorf("cannot offer the entry at %d: %w", e.Start, ErrInFlight)
	}
	offered := *e
	offered.DeliveryID = h.deliveryID(v.Generation(), e.Start, e.Raw)
	f := newFlight(&offered, v.Generation())
	f.here = false
	if h.locate(v.source, f); !f.here || e.Start < v.at.cursor {
		return nil, fmt.Errorf("cannot offer the entry at %d: it does not stand in the inbox any more", e.Start)
	}
	f.resume(v.Requeued())
	f.offerTo(o)
	f.InboxSize = v.source.size
	// The record must not survive a power cut that its line does not survive.
	if err := h.dir.SyncData(v.source.file, h.name); err != nil {
		return nil, err
	}
	if err := h.writeOffer(f, nil); err != nil {
		return nil, err
	}
	return &f.Record, nil
}

// OfferAgain records the entry in flight as offered again, because nothing proves that it was
// taken. In any other state only recovery may queue it again.
func (h *Held) OfferAgain(o Offering) (*Record, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	f := v.flight
	switch {
	case f == nil:
		return nil, fmt.Errorf("cannot offer again: %w", ErrNothingInFlight)
	case f.isRuns():
		return nil, fmt.Errorf("cannot offer entry %s again: %w", f.DeliveryID, ErrRunHasIt)
	case f.State != queue.Offered:
		return nil, fmt.Errorf("cannot offer entry %s again: it is %s", f.DeliveryID, f.State)
	case f.Prompt() == "":
		return nil, fmt.Errorf("cannot offer entry %s again: its line holds no prompt", f.DeliveryID)
	}
	f.own()
	before := *f
	f.Untouched = false
	f.Attempt++
	f.offerTo(o)
	if err := h.writeOffer(f, &before); err != nil {
		return nil, err
	}
	return &f.Record, nil
}

// TakeBack withdraws an offer that was not handed over, and uses up no attempt. It reports whether
// it did: somebody may have dealt with the entry meanwhile.
func (h *Held) TakeBack(offered *Record) (bool, error) {
	v, err := h.settle()
	if err != nil {
		return false, err
	}
	defer v.Close()
	if !offered.IsSameOffer(v.InFlight()) {
		return false, nil
	}
	back := v.flight.Tries
	back.Attempt--
	err = h.requeue(v, back)
	return err == nil, err
}

// Acknowledge finishes the entry in flight: its outbox record, unless an interrupted call has
// already written that, then the cursor, then the record's removal.
//
// The outbox record makes the acknowledgement durable. After a power cut the cursor is intact but
// may be the old one; then the outbox record shows that the entry is done.
func (h *Held) Acknowledge(a Acknowledgement) error {
	v, err := h.settle()
	if err != nil {
		return err
	}
	defer v.Close()
	switch {
	case v.flight == nil:
		return fmt.Errorf("cannot acknowledge: %w", ErrNothingInFlight)
	case v.flight.isRuns():
		return fmt.Errorf("cannot acknowledge entry %s: %w", v.flight.DeliveryID, ErrRunHasIt)
	}
	done, err := h.isDelivered(v.flight.DeliveryID)
	if err == nil && !done {
		err = h.record(newDelivery(v.flight, a))
	}
	if err != nil {
		return err
	}
	return h.pass(v)
}

// record appends a record to the outbox, durably.
func (h *Held) record(d *Delivery) error {
	line, err := encode(d)
	if err != nil {
		return err
	}
	if info, err := h.home.Stat(OutboxFile); err == nil && info.Size() >= maxOutbox {
		if err := h.home.Rename(OutboxFile, OlderOutbox); err != nil {
			return err
		}
	}
	return h.extend(h.home, OutboxFile, line)
}

// pass moves the cursor past the entry in flight, whether done or given up, and removes its
// record.
func (h *Held) pass(v *View) error {
	f := v.flight
	if !f.here {
		h.note("the line of entry %s does not stand in the inbox any more; the cursor stays", f.DeliveryID)
		return h.clearRecord()
	}
	if v.Requeued().Is(f.StartOffset, f.DeliveryID, f.EntryID) {
		v.at.sidecar.Requeued = nil
	}
	if err := h.advance(v, f.EndOffset, f.raw); err != nil {
		return err
	}
	return h.clearRecord()
}

// requeue puts the entry in flight at the head of the queue, with the history to remember.
func (h *Held) requeue(v *View, remember Tries) error {
	f := v.flight
	q := &History{Tries: remember, DeliveryID: f.DeliveryID, EntryID: form.Sum(f.raw)}
	if !f.here {
		return h.requeueMoved(v, q)
	}
	q.DeliveryID = h.deliveryID(v.Generation(), f.StartOffset, f.raw)
	if q.Attempt == 0 && q.Repeats == 0 {
		q = nil
	}
	if q != nil || v.Requeued() != nil {
		v.at.sidecar.Requeued = q
		if err := h.writeSidecar(v.at.sidecar); err != nil {
			return err
		}
	}
	return h.clearRecord()
}

// requeueMoved is requeue for an entry whose inbox was truncated, rotated or replaced meanwhile:
// its line is appended to the present one. The sidecar records that first, so that an interruption
// does not append it twice.
func (h *Held) requeueMoved(v *View, q *History) error {
	q.Moved, q.From = true, v.source.size
	if was := v.Requeued(); was != nil && was.Moved && was.DeliveryID == q.DeliveryID {
		q.From = was.From // it was begun before
	}
	v.at.sidecar.Requeued = q
	if err := h.writeSidecar(v.at.sidecar); err != nil {
		return err
	}
	stands, err := h.hasLine(v.source, q.From, v.flight.raw)
	if err != nil {
		return err
	}
	if !stands {
		if err := h.append(v.flight.raw); err != nil {
			return err
		}
		h.note("entry %s was appended to the inbox again: its old line is gone", v.flight.DeliveryID)
	}
	return h.clearRecord()
}

// hasLine reports whether the inbox contains a line equal to raw at or after an offset.
func (r *Reader) hasLine(s *source, from int64, raw []byte) (bool, error) {
	if s.file == nil || from >= s.size {
		return false, nil
	}
	l := linesOf(s.file, from, s.size, max(r.maxEntry, int64(len(raw))), mostLines)
	for id := form.Sum(raw); ; {
		got, err := l.read()
		if err != nil {
			return false, ignoreEOF(err)
		}
		if got.complete && got.id() == id {
			return true, nil
		}
	}
}
