package hook

import (
	"time"

	"heartbeat/hook/inbox"
)

// Session is a live session while the hook lock is held: its queue, and its record
// as read under that lock. Hooks and the shim change neither without the lock, and
// everything that changes both is a method here. A Session is valid only while the
// lock is held: nothing read from it may be used under the next hold.
type Session struct {
	*inbox.Held
	Record *Record
	live   *Live
}

// Save makes the record the session's, and shows it in session.json: the error is about that.
func (s *Session) Save() error { return s.live.save(s.Record) }

// Offer is inbox.Held.Offer for the session's next entry.
func (s *Session) Offer(e *inbox.Entry, o inbox.Offering) (*inbox.InFlight, error) {
	o.Checked = s.Record.Policy.Checked || e.Checked
	f, err := s.Held.Offer(e, o)
	s.Record.works(f)
	return f, err
}

// Reoffer is inbox.Held.Reoffer.
func (s *Session) Reoffer(o inbox.Offering) (*inbox.Entry, *inbox.InFlight, error) {
	o.Checked = s.Record.Policy.Checked
	e, f, err := s.Held.Reoffer(o)
	s.Record.works(f)
	return e, f, err
}

// Rebind is inbox.Held.Rebind: the session continues another session's entry.
func (s *Session) Rebind(delivery string, o inbox.Offering) (*inbox.InFlight, error) {
	f, err := s.Held.Rebind(delivery, o)
	s.Record.works(f)
	return f, err
}

// Withdraw is inbox.Held.Withdraw: the session has no entry any more.
func (s *Session) Withdraw() error {
	err := s.Held.Withdraw()
	if err == nil {
		s.Record.rests()
	}
	return err
}

// TakeBack is inbox.Held.TakeBack.
func (s *Session) TakeBack(offered *inbox.InFlight) (bool, error) {
	taken, err := s.Held.TakeBack(offered)
	if taken {
		s.Record.rests()
	}
	return taken, err
}

// Acknowledge is inbox.Held.Acknowledge: the session is done with its entry.
func (s *Session) Acknowledge(a inbox.Acknowledgement) (*inbox.Delivery, error) {
	d, err := s.Held.Acknowledge(a)
	if r := s.Record; err == nil {
		r.Acknowledged++
		r.Continuations = 0
		r.Work, r.LastReply, r.Settles = nil, "", ""
	}
	return d, err
}

// Checks reports whether the session's entry in flight is done only when a check has
// passed.
func (s *Session) Checks(f *inbox.InFlight) bool { return s.Record.checks(f) }

func (r *Record) checks(f *inbox.InFlight) bool { return r.Policy.Checked || f.Checked }

// Check is inbox.Held.Check: the session claims to be done with its entry.
func (s *Session) Check(a inbox.Acknowledgement) (*inbox.InFlight, error) {
	f, err := s.Held.Check(a)
	if r := s.Record; err == nil {
		r.LastReply, r.Settles = "", ""
	}
	return f, err
}

// Heeds takes over what a verdict has decided about the session's entry; f is what is
// in flight now, or nil. done is the delivery id of what it has proved, or "".
func (s *Session) Heeds(f *inbox.InFlight) (done string) {
	r := s.Record
	switch w := r.Work; {
	case w == nil:
	case f == nil || f.DeliveryID != w.DeliveryID:
		if passed, err := s.Delivered(w.DeliveryID); err == nil && passed {
			done = w.DeliveryID
			r.Acknowledged++
		} else if aside, err := s.IsAside(w.DeliveryID); err == nil && aside {
			r.SetAside++
		} else {
			r.Undone++
		}
		r.Continuations = 0
		r.Work, r.LastReply, r.Settles = nil, "", ""
	case f.Iteration > max(1, w.Iteration):
		r.Continuations = 0
	}
	return done
}

// works records that an entry was offered to the session.
func (r *Record) works(f *inbox.InFlight) {
	if f == nil {
		return
	}
	r.Work = &Work{DeliveryID: f.DeliveryID, ID: f.ID, Source: f.Source, Attempt: f.Attempt, Iteration: f.Iteration, Since: time.Now()}
	r.Continuations++
}

// rests records that an offer to the session reached nobody.
func (r *Record) rests() {
	if r.Work != nil {
		r.Work = nil
		r.Continuations--
	}
}
