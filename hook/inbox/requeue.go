package inbox

import (
	"fmt"

	form "heartbeat/queue/line"
)

// Withdraw takes back an offer that was never handed over (the launch failed): the
// entry is queued again and no attempt is used up. An iteration is unproven again.
func (h *Held) Withdraw() error { return h.carrier().withdraw() }

func (h *heldLane) withdraw() error {
	v, err := h.settle()
	if err != nil {
		return err
	}
	defer v.close()
	f := v.flight
	if f == nil {
		return fmt.Errorf("cannot withdraw the offer: %w", ErrNothingInFlight)
	}
	if f.State != Offered {
		return fmt.Errorf("cannot withdraw the offer of entry %s: it is %s", f.DeliveryID, f.State)
	}
	if f.Iteration > 1 {
		f.State = Unproven
		return h.writeFlight(f)
	}
	back := f.Tries
	back.Attempt--
	return h.requeue(v, back)
}

// TakeBack withdraws an offer that was not handed over, and reports whether it did:
// somebody may have dealt with the entry meanwhile.
func (h *Held) TakeBack(offered *InFlight) (bool, error) {
	f, err := h.InFlight()
	if err != nil || !offered.Same(f) {
		return false, err
	}
	err = h.Withdraw()
	return err == nil, err
}

// requeue puts the entry in flight at the head of the queue, with the history to
// remember.
func (h *heldLane) requeue(v *view, remember Tries) error {
	f, r := v.flight, &requeued{Tries: remember, Proving: v.flight.rests()}
	r.DeliveryID, r.EntryID = f.DeliveryID, form.Sum(f.raw)
	if f.here {
		r.DeliveryID = h.deliveryID(v.verdict.meta.Generation, f.StartOffset, f.raw)
	}
	if !f.here {
		return h.requeueMoved(v, r)
	}
	if r.Attempt == 0 && r.Repeats == 0 && r.Check == 0 {
		r = nil
	}
	if r != nil || v.verdict.meta.Requeued != nil {
		v.verdict.meta.Requeued = r
		if err := h.writeMeta(v.verdict.meta); err != nil {
			return err
		}
	}
	return h.clearFlight()
}

// requeueMoved is requeue for an entry whose inbox was truncated, rotated or
// replaced meanwhile: its line is appended to the current inbox. The sidecar
// records that first, so that an interruption does not append it twice.
func (h *heldLane) requeueMoved(v *view, r *requeued) error {
	r.Moved, r.From = true, v.source.size
	if was := v.verdict.meta.Requeued; was != nil && was.Moved && was.DeliveryID == r.DeliveryID {
		r.From = was.From // it was begun before
	}
	v.verdict.meta.Requeued = r
	if err := h.writeMeta(v.verdict.meta); err != nil {
		return err
	}
	there, err := h.stands(v.source, r.From, v.flight.raw)
	if err != nil {
		return err
	}
	if !there {
		if err := h.appendRaw(v.flight.raw); err != nil {
			return err
		}
		h.note("entry %s was appended to the inbox again: its old line is gone", v.flight.DeliveryID)
	}
	return h.clearFlight()
}

// stands reports whether the inbox contains a line equal to raw at or after an
// offset.
func (q *lane) stands(s *source, from int64, raw []byte) (bool, error) {
	if s.file == nil || from >= s.size {
		return false, nil
	}
	l := q.lines(s.file, from, s.size, max(q.maxEntry, int64(len(raw))), mostInbox)
	id := form.Sum(raw)
	for {
		got, err := l.read()
		if err != nil {
			return false, ignoreEOF(err)
		}
		if got.complete && got.id() == id {
			return true, nil
		}
	}
}
