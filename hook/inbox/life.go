package inbox

import (
	"errors"
	"fmt"

	form "heartbeat/queue/line"
)

// InFlight returns the entry in flight, or nil. It cleans up an entry that the
// cursor has passed (it was acknowledged, but removing the record was interrupted)
// and returns nil for it. A corrupt record is set aside, and the entry at the
// cursor counts as offered without proof.
func (h *Held) InFlight() (*InFlight, error) { return h.carrier().inFlight() }

func (h *heldLane) inFlight() (*InFlight, error) {
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
	if err := h.check(); err != nil {
		return nil, err
	}
	to := &heldLane{h.laneOf(e.Urgent), h}
	for _, l := range to.others() {
		v, err := l.settle()
		if err != nil {
			return nil, err
		}
		v.close()
		if v.flight != nil {
			return nil, fmt.Errorf("cannot offer the entry at %d: %w", e.Start, ErrInFlight)
		}
	}
	return to.offer(e, o)
}

func (h *heldLane) offer(e *Entry, o Offering) (*InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	if v.flight != nil {
		return nil, fmt.Errorf("cannot offer the entry at %d: %w", e.Start, ErrInFlight)
	}
	f := h.newFlight(e, v.verdict.meta.Generation)
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

// Reoffer records the entry in flight as offered again and returns it with its
// prompt: there was no proof that it was taken, or a check has not passed, and this
// is its next iteration. It fails in any other state: then only Recover may queue it
// again.
func (h *Held) Reoffer(o Offering) (*Entry, *InFlight, error) { return h.carrier().reoffer(o) }

func (h *heldLane) reoffer(o Offering) (*Entry, *InFlight, error) {
	v, err := h.settle()
	if err != nil {
		return nil, nil, err
	}
	defer v.close()
	f := v.flight
	switch {
	case f == nil:
		return nil, nil, fmt.Errorf("cannot offer again: %w", ErrNothingInFlight)
	case f.State != Offered && (f.State != Unproven || f.Interrupted != ""):
		return nil, nil, fmt.Errorf("cannot offer entry %s again: it is %s", f.DeliveryID, f.State)
	}
	e := f.entry()
	if e.Prompt == "" {
		return nil, nil, fmt.Errorf("cannot offer entry %s again: its line holds no prompt", f.DeliveryID)
	}
	f.own()
	before := *f
	if f.State == Offered {
		f.Untouched = false
		f.Attempt++
	}
	o.Checked = o.Checked || f.Checked
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
	f.EntryID = form.Sum(f.raw)
}

// Advance records that the entry in flight has reached a state, of those from offered
// to background. Going backwards does nothing and is not an error. A promptID that is
// not "" is stored.
func (h *Held) Advance(s State, promptID string) (*InFlight, error) {
	if s.rank() == 0 || s.rank() > Background.rank() {
		return nil, fmt.Errorf("cannot record the state %q: an entry cannot be advanced to it", s)
	}
	return h.carrier().alter("record the state "+string(s)+" of", func(f *flight) error {
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
	return h.carrier().alter("record a failure of", func(f *flight) error {
		f.Failure = kind
		return nil
	})
}

// Place records the file in which the entry in flight was handed over, "" for none, and where the
// client's transcript would show that.
func (h *Held) Place(file string, offset int64) (*InFlight, error) {
	return h.carrier().alter("place", func(f *flight) error {
		f.File, f.TranscriptOffset = file, offset
		if file != "" {
			f.Unread = false
		}
		return nil
	})
}

// Unread records that the session has not read the file in which it was handed over the
// entry in flight: it cannot have worked on it, whatever tools it has called. Recover has
// another session begin with it (Interruption.Begins).
func (h *Held) Unread() (*InFlight, error) {
	return h.carrier().alter("record that nobody has read", func(f *flight) error {
		f.Unread = true
		return nil
	})
}

// Cancel records that a person does not want the entry in flight to be worked on
// any more: Recover carries it out when the session is gone, unless the entry is
// done by then. The error matches ErrNothingInFlight where that entry is not in
// flight any more.
func (h *Held) Cancel(c Cancellation) (*InFlight, error) {
	return h.carrier().alter("cancel", func(f *flight) error {
		if f.DeliveryID != c.Delivery {
			return ErrNothingInFlight
		}
		f.Cancel = c.mark()
		return nil
	})
}

// Restore records the next entry as in flight again if it has this delivery id:
// somebody has removed the record of what the session o works on, or the session that
// is gone. A tool may have run for it. It returns nil if it is another one, if it was
// queued again since, or if it is done or given up.
func (h *Held) Restore(delivery string, attempt int, o Offering) (*InFlight, error) {
	carrier := h.carrier()
	f, err := carrier.restored(delivery, attempt, o)
	for _, l := range h.lanes() {
		if l.urgent != carrier.urgent && f == nil && err == nil {
			f, err = l.restored(delivery, attempt, o)
		}
	}
	return f, err
}

func (h *heldLane) restored(delivery string, attempt int, o Offering) (*InFlight, error) {
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

func (h *heldLane) restore(v *view, delivery string, attempt int, o Offering) error {
	if delivery == "" || v.flight != nil || v.flightCorrupt {
		return nil
	}
	e, err := h.firstEntry(v.source, v.verdict.cursor, v.verdict.meta.Generation)
	if err != nil || e == nil || e.DeliveryID != delivery || v.verdict.meta.Requeued.is(e.Start, e.DeliveryID, form.Sum(e.Raw)) {
		return err
	}
	if over, err := h.over(delivery); over || err != nil {
		return err
	}
	h.note("%s of entry %s was removed; a tool may have run for it", h.flight, delivery)
	f := h.newFlight(e, v.verdict.meta.Generation)
	o.Checked = o.Checked || e.Checked
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
	return h.carrier().alter("go on with", func(f *flight) error {
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
	return h.carrier().alter("record the going on of", func(f *flight) error {
		f.Failure, f.PromptID = "", promptID
		return nil
	})
}

// alter changes the record of the entry in flight, durably.
func (h *heldLane) alter(what string, change func(*flight) error) (*InFlight, error) {
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
// ErrNothingInFlight, and for one that has to be checked ErrUnproven: see Verdict.
//
// The outbox record makes the acknowledgement durable. After a power cut the cursor
// is intact but may be the old one; then the outbox record shows that the entry is
// done.
func (h *Held) Acknowledge(a Acknowledgement) (*Delivery, error) { return h.carrier().acknowledge(a) }

func (h *heldLane) acknowledge(a Acknowledgement) (*Delivery, error) {
	v, err := h.settle()
	if err != nil {
		return nil, err
	}
	defer v.close()
	if v.flight == nil {
		return nil, fmt.Errorf("cannot acknowledge: %w", ErrNothingInFlight)
	}
	if v.flight.Checked {
		return nil, fmt.Errorf("cannot acknowledge entry %s: %w", v.flight.DeliveryID, ErrUnproven)
	}
	return h.finish(v, newDelivery(v.flight, a))
}

// finish completes the entry in flight, whoever asks: it writes the outbox record,
// unless an interrupted call already did, then calls pass.
func (h *heldLane) finish(v *view, d *Delivery) (*Delivery, error) {
	done, err := h.recorded(d)
	if err != nil {
		return nil, err
	}
	if !done {
		if err := h.held.unfile(d.DeliveryID); err != nil {
			return nil, err
		}
		if err := h.held.record(d); err != nil {
			return nil, err
		}
	}
	return d, h.pass(v)
}

// pass moves the cursor past the entry in flight, whether done or given up, and
// removes its record.
func (h *heldLane) pass(v *view) error {
	f := v.flight
	if f.apart() {
		return errors.Join(h.clearFlight(), h.dir.Sync()) // no cursor would tell that it is done
	}
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
