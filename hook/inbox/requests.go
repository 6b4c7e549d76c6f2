package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// Requests carries out what one session asks of its queue, in the process that moves its entries.
// Its methods are called from one goroutine.
type Requests struct {
	place   Place
	session string
	last    *queue.Entry // what was in flight after the last request, as the session was told
}

// RequestsOf returns the requests of a session of ours, by its id.
func RequestsOf(p Place, session string) *Requests { return &Requests{place: p, session: session} }

// How long a request waits for the hook lock: a client may wait for the answer.
const (
	requestPatience = 2 * time.Second
	stopPatience    = 10 * time.Second // of one that ends a turn
)

// countBytes is how much of the queue is read to count it.
const countBytes = 1 << 20

// Carry carries out a request.
func (r *Requests) Carry(ctx context.Context, q wire.Request) (a wire.Answer) {
	a.N = q.N
	patience := requestPatience
	if slices.ContainsFunc(q.Steps, func(s wire.Step) bool {
		return s.Do == wire.Offer || s.Do == wire.Again || s.Do == wire.Claim || s.Do == wire.Acknowledge
	}) {
		patience = stopPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in, err := Open(r.place)
	if err != nil {
		a.Refuse(err)
		return a
	}
	defer in.Close()
	held, err := in.Lock(ctx)
	if err != nil {
		a.Refuse(fmt.Errorf("cannot take the hook lock: %w", err))
		return a
	}
	defer held.Unlock()
	r.carry(held, q, &a)
	a.Notes = in.Notes()
	return a
}

func (r *Requests) carry(h *Held, q wire.Request, a *wire.Answer) {
	f, err := r.flight(h)
	for r.tell(a, f); err == nil && a.Steps < len(q.Steps); a.Steps++ {
		if f, err = r.step(h, q.Steps[a.Steps], f, a); err != nil {
			break
		}
		r.tell(a, f)
	}
	if err != nil {
		a.Refuse(err)
		if a.Known, a.Entry = false, nil; errors.Is(err, errOthers) {
			a.Code = wire.InFlight
		}
		if f, err = r.flight(h); err != nil {
			return
		}
		r.tell(a, f)
	}
	if f != nil && a.Text != nil {
		g := f.Given()
		a.Text, a.Shown = &g.Text, &g.Shown
	} else {
		a.Text = nil
	}
}

// tell says in an answer what is in flight.
func (r *Requests) tell(a *wire.Answer, f *InFlight) {
	a.Known, a.Entry = true, r.entryOf(f)
	if r.last = nil; f != nil && f.Session == r.session {
		r.last = a.Entry
	}
}

// errOthers means that the entry in flight is another session's.
var errOthers = errors.New("it is in flight for another session")

// may reports whether a step can be about what is in flight.
func (r *Requests) may(s wire.Step, f *InFlight) error {
	switch {
	case s.Do == wire.Look || s.Do == wire.Count:
		return nil
	case s.At != (wire.Ref{}) && s.At != wire.RefOf(r.entryOf(f)):
		return fmt.Errorf("cannot %s entry %s: %w", s.Do, s.At.Delivery, queue.ErrStale)
	case f != nil && s.Do != wire.Rebind && f.State != Unproven && f.Session != r.session:
		return fmt.Errorf("entry %s is in flight for session %q: %w", f.DeliveryID, f.Session, errOthers)
	}
	return nil
}

// flight returns the entry in flight. If its record was removed while the session works on it, a
// tool may have run for it.
func (r *Requests) flight(h *Held) (*InFlight, error) {
	f, err := h.InFlight()
	if was := r.last; err == nil && f == nil && was != nil {
		return h.Restore(was.Delivery, was.Attempt, Offering{Session: r.session, PromptID: was.Handover.PromptID, Checked: was.Checked})
	}
	return f, err
}

// entryOf is what the session is told of what is in flight. The number of a hand-over that it was
// told of stays, whatever the record says.
func (r *Requests) entryOf(f *InFlight) *queue.Entry {
	if f == nil {
		return nil
	}
	e := f.Given().Entry
	if r.last != nil && r.last.Delivery == e.Delivery && r.last.Attempt == e.Attempt && r.last.Iteration == e.Iteration {
		e.Handover.N = r.last.Handover.N
	}
	return &e
}

// step carries out a step, and returns what is in flight then.
func (r *Requests) step(h *Held, s wire.Step, f *InFlight, a *wire.Answer) (*InFlight, error) {
	if err := r.may(s, f); err != nil {
		return f, err
	}
	switch s.Do {
	case wire.Look:
		a.Text = &queue.Text{}
		return f, r.look(h, s, f, a)
	case wire.Count:
		d, err := h.Depth(countBytes)
		a.Depth = &wire.Depth{Queued: d.Entries, More: d.More, Names: d.Names}
		return f, err
	case wire.Offer, wire.Again:
		a.Text = &queue.Text{}
		return r.offer(h, s, f)
	case wire.Place:
		return h.Place(s.To.File, s.To.Offset)
	case wire.Withdraw:
		if err := h.Withdraw(); err != nil {
			return f, err
		}
		return h.InFlight()
	case wire.Advance:
		return h.Advance(State(s.State), s.PromptID)
	case wire.GoOn:
		return h.GoesOn(s.PromptID)
	case wire.Fail:
		return h.Fail(s.Failure)
	case wire.Unread:
		return h.Unread()
	case wire.Void:
		return h.Void()
	case wire.Claim:
		return h.Check(acknowledgement(s.Reply))
	case wire.Acknowledge:
		_, err := h.Acknowledge(acknowledgement(s.Reply))
		return nil, err
	case wire.Rebind:
		a.Text = &queue.Text{}
		return h.Rebind(s.At.Delivery, offering(s))
	case wire.Cancel:
		return h.Cancel(Cancellation{Delivery: s.At.Delivery, Again: s.As == queue.CancelAgain})
	}
	return f, fmt.Errorf("cannot %s: %w", s.Do, errors.ErrUnsupported)
}

func (r *Requests) look(h *Held, s wire.Step, f *InFlight, a *wire.Answer) error {
	if at := s.At.Delivery; at != "" && (f == nil || f.DeliveryID != at) {
		done, err := h.Delivered(at)
		if err != nil {
			return err
		}
		aside, err := h.IsAside(at)
		if err != nil {
			return err
		}
		switch a.Fate = wire.Undone; {
		case done:
			a.Fate = wire.Done
		case aside:
			a.Fate = wire.Suspended
		}
	}
	if !s.Next {
		return nil
	}
	_, err := h.Next()
	if a.Queued = err == nil; errors.Is(err, ErrEmpty) {
		err = nil
	}
	return err
}

func (r *Requests) offer(h *Held, s wire.Step, f *InFlight) (*InFlight, error) {
	returns := f != nil && f.State == Unproven && f.Interrupted == "" // answered after it was set aside
	if s.Do == wire.Again || returns {
		_, f, err := h.Reoffer(offering(s))
		r.last = nil // it is another hand-over
		return f, err
	}
	if f != nil {
		return f, fmt.Errorf("cannot hand over the next entry: %w", ErrInFlight)
	}
	e, err := h.Next()
	if errors.Is(err, ErrEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.Checked = s.Checked || e.Checked
	r.last = nil
	return h.Offer(e, offering(s))
}

func offering(s wire.Step) Offering {
	return Offering{
		Via: Via(s.To.Via), Session: s.To.Session, PromptID: s.To.PromptID, Transcript: s.To.Transcript, TranscriptOffset: s.To.Offset,
		File: s.To.File, Unmarked: s.To.Unmarked, Checked: s.Checked,
	}
}

func acknowledgement(r queue.Reply) Acknowledgement {
	return Acknowledgement{Session: r.Session, Reply: r.Text, Abandoned: r.Abandoned, Now: r.At}
}
