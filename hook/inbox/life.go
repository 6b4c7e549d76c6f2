package inbox

import (
	"errors"
	"fmt"
)

// InFlight returns the entry in flight, or nil. It cleans up an entry that the
// cursor has passed (it was acknowledged, but removing the record was interrupted)
// and returns nil for it. A corrupt record is set aside, and the entry at the
// cursor counts as offered without proof.
func (h *Held) InFlight() (*InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	return v.record(), nil
}

func (v *view) record() *InFlight {
	if v.flight == nil {
		return nil
	}
	f := v.flight.InFlight
	return &f
}

// Offer records e as in flight and offered. When it returns nil, the record is
// durable and the entry may be handed over. Attempt and Repeats continue from the
// entry's earlier hand-overs. It fails while another entry is in flight
// (ErrInFlight), and when e is no longer in the inbox. After an error the entry is
// queued as before, as far as the disk allows.
func (h *Held) Offer(e *Entry, o Offering) (*InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	if v.flight != nil {
		return nil, fmt.Errorf("cannot offer the entry at %d: %w", e.Start, ErrInFlight)
	}
	f := newFlight(e, v.verdict.meta.Generation)
	f.here = false
	if h.locateFlight(v.source, f); !f.here || e.Start < v.verdict.cursor {
		return nil, fmt.Errorf("cannot offer the entry at %d: it does not stand in the inbox any more", e.Start)
	}
	f.resume(v.verdict.meta.Requeued)
	f.offer(o)
	f.InboxSize = v.source.size
	// The record must not survive a power cut that its line does not survive.
	if err := h.dir.SyncData(v.source.file, h.name); err != nil {
		return nil, err
	}
	if err := h.writeOffer(f, nil); err != nil {
		return nil, err
	}
	return &f.InFlight, nil
}

// Reoffer records the entry in flight as offered again (there was no proof that it
// was taken) and returns it with its prompt. It fails when the entry was taken:
// then only Recover may queue it again.
func (h *Held) Reoffer(o Offering) (*Entry, *InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, nil, err
	}
	defer v.close()
	f := v.flight
	switch {
	case f == nil:
		return nil, nil, fmt.Errorf("cannot offer again: %w", ErrNothingInFlight)
	case f.State != Offered:
		return nil, nil, fmt.Errorf("cannot offer entry %s again: it is %s", f.DeliveryID, f.State)
	}
	e := f.entry()
	if e.Prompt == "" {
		return nil, nil, fmt.Errorf("cannot offer entry %s again: its line holds no prompt", f.DeliveryID)
	}
	f.own()
	before := *f
	f.Untouched = false
	f.Attempt++
	f.offer(o)
	if err := h.writeOffer(f, &before); err != nil {
		return nil, nil, err
	}
	return e, v.record(), nil
}

// own converts heartbeat-rs's record to ours.
func (f *flight) own() {
	if !f.foreign {
		return
	}
	f.foreign = false
	f.EntryID = entryID(f.raw)
}

// Advance records that the entry in flight has reached a state. Going backwards
// does nothing and is not an error. A promptID that is not "" is stored.
func (h *Held) Advance(s State, promptID string) (*InFlight, error) {
	if s.rank() == 0 {
		return nil, fmt.Errorf("cannot record the state %q: it is none", s)
	}
	return h.alter("record the state "+string(s)+" of", func(f *flight) error {
		if s.rank() > f.State.rank() {
			f.State = s
		}
		if promptID != "" {
			f.PromptID = promptID
		}
		return nil
	})
}

// Fail records that an API failure ended the turn of the entry in flight, so that
// Recover can tell whether the failure is temporary.
func (h *Held) Fail(kind string) (*InFlight, error) {
	return h.alter("record a failure of", func(f *flight) error {
		f.Failure = kind
		return nil
	})
}

// Cancel records that a person does not want the entry in flight to be worked on
// any more: Recover carries it out when the session is gone, unless the entry is
// done by then. The error matches ErrNothingInFlight where that entry is not in
// flight any more.
func (h *Held) Cancel(c Cancellation) (*InFlight, error) {
	return h.alter("cancel", func(f *flight) error {
		if f.DeliveryID != c.Delivery {
			return ErrNothingInFlight
		}
		f.Cancel = c.mark()
		return nil
	})
}

// Restore records the next entry as in flight again if it has this delivery id:
// somebody has removed the record of what the session o works on, or the session that
// is gone. A tool may have run for it. It returns nil if it is another one, or if it
// was queued again since.
func (h *Held) Restore(delivery string, attempt int, o Offering) (*InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	if err := h.restore(v, delivery, attempt, o); err != nil {
		return nil, err
	}
	return v.record(), nil
}

func (h *Held) restore(v *view, delivery string, attempt int, o Offering) error {
	if delivery == "" || v.flight != nil || v.flightCorrupt {
		return nil
	}
	e, err := h.firstEntry(v.source, v.verdict.cursor, v.verdict.meta.Generation)
	if err != nil || e == nil || e.DeliveryID != delivery || v.verdict.meta.Requeued.is(e.Start, e.DeliveryID, entryID(e.Raw)) {
		return err
	}
	h.note("%s of entry %s was removed; a tool may have run for it", FlightFile, delivery)
	f := newFlight(e, v.verdict.meta.Generation)
	f.offer(o)
	f.State, f.InboxSize = Started, v.source.size
	f.Attempt = max(1, attempt)
	v.flight = f
	return h.writeFlight(f)
}

// Rebind gives the entry in flight, whose turn a failure ended, to another session,
// which continues its conversation. Its state and attempt stay the same; GoesOn
// records that the session demonstrably continues it.
func (h *Held) Rebind(delivery string, o Offering) (*InFlight, error) {
	return h.alter("go on with", func(f *flight) error {
		if f.DeliveryID != delivery || f.Failure == "" {
			return errors.New("it is another one, or nothing interrupted it")
		}
		f.Via, f.Session, f.PromptID = ViaResume, o.Session, ""
		f.Transcript, f.TranscriptOffset = o.Transcript, o.TranscriptOffset
		return nil
	})
}

// GoesOn records that a session demonstrably continues the entry in flight.
func (h *Held) GoesOn(promptID string) (*InFlight, error) {
	return h.alter("record the going on of", func(f *flight) error {
		f.Failure, f.PromptID = "", promptID
		return nil
	})
}

// alter changes the record of the entry in flight, durably.
func (h *Held) alter(what string, change func(*flight) error) (*InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	f := v.flight
	if f == nil {
		return nil, fmt.Errorf("cannot %s an entry: %w", what, ErrNothingInFlight)
	}
	before := f.InFlight
	if err := change(f); err != nil {
		return nil, fmt.Errorf("cannot %s entry %s: %w", what, f.DeliveryID, err)
	}
	if f.InFlight == before {
		return v.record(), nil
	}
	f.own()
	if err := h.writeFlight(f); err != nil {
		return nil, err
	}
	return v.record(), nil
}

// Acknowledge finishes the entry in flight: it writes the outbox record, then the
// cursor, then removes the in-flight record. Without an entry in flight it returns
// ErrNothingInFlight.
//
// The outbox record makes the acknowledgement durable. After a power cut the cursor
// is intact but may be the old one; then the outbox record shows that the entry is
// done.
func (h *Held) Acknowledge(a Acknowledgement) (*Delivery, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	if v.flight == nil {
		return nil, fmt.Errorf("cannot acknowledge: %w", ErrNothingInFlight)
	}
	return h.finish(v, a)
}

// finish completes the entry in flight, whoever asks: it writes the outbox record,
// unless an interrupted call already did, then calls pass.
func (h *Held) finish(v *view, a Acknowledgement) (*Delivery, error) {
	d := newDelivery(v.flight, a)
	done, err := h.delivered(d.DeliveryID)
	if err != nil {
		return nil, err
	}
	if !done {
		if err := h.record(d); err != nil {
			return nil, err
		}
	}
	return d, h.pass(v)
}

// pass moves the cursor past the entry in flight, whether done or given up, and
// removes its record.
func (h *Held) pass(v *view) error {
	f := v.flight
	if !f.here {
		h.note("the line of entry %s does not stand in the inbox any more; the cursor stays", f.DeliveryID)
		return h.clearFlight()
	}
	if v.verdict.meta.Requeued.is(f.StartOffset, f.DeliveryID, f.EntryID) {
		v.verdict.meta.Requeued = nil
	}
	if err := h.advance(v, f.EndOffset, f.raw); err != nil {
		return err
	}
	return h.clearFlight()
}

// Withdraw takes back an offer that was never handed over (the launch failed): the
// entry is queued again and no attempt is used up.
func (h *Held) Withdraw() error {
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
	return h.requeue(v, Tries{f.Attempt - 1, f.Repeats, f.Untouched})
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
func (h *Held) requeue(v *view, remember Tries) error {
	f, r := v.flight, &requeued{Tries: remember}
	r.DeliveryID, r.EntryID = f.DeliveryID, entryID(f.raw)
	if f.here {
		r.DeliveryID = deliveryID(v.verdict.meta.Generation, f.StartOffset, f.raw)
	}
	if !f.here {
		return h.requeueMoved(v, r)
	}
	if r.Attempt == 0 && r.Repeats == 0 {
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
func (h *Held) requeueMoved(v *view, r *requeued) error {
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
func (q *Queue) stands(s *source, from int64, raw []byte) (bool, error) {
	if s.file == nil || from >= s.size {
		return false, nil
	}
	l := q.lines(s.file, from, s.size, max(q.maxEntry, int64(len(raw))), mostInbox)
	id := entryID(raw)
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
