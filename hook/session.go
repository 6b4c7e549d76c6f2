package hook

import (
	"context"
	"time"

	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// gate lets one in at a time.
type gate chan struct{}

// enter waits until nobody is in, or ctx ends.
func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) leave() { <-g }

// Session is a live session while nobody else changes its record: hooks and the shim change it by
// one only. It is valid until it is left; after Ask nothing that was read from its record before
// may be used.
type Session struct {
	Record *Record
	live   *Live
	ends   bool // it decides what becomes of the entry in flight
	inside bool
	done   string // the delivery id of what was found to be done
}

// Enter waits until nobody else changes the session, or ctx ends. Who wants to ask anything about
// the entry in flight also waits until nobody else does (ends).
func (l *Live) Enter(ctx context.Context, ends bool) (*Session, error) {
	if ends {
		if err := l.stops.enter(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.turn.enter(ctx); err != nil {
		if ends {
			l.stops.leave()
		}
		return nil, err
	}
	s := &Session{Record: l.Record().clone(), live: l, ends: ends, inside: true}
	s.heed()
	return s, nil
}

// Leave lets others in; a second call does nothing.
func (s *Session) Leave() {
	if s.inside {
		s.live.turn.leave()
		if s.ends {
			s.live.stops.leave()
		}
	}
	s.inside = false
}

// Save makes the record the session's, and shows it in session.json: the error is about that.
func (s *Session) Save() error { return s.live.save(s.Record) }

// Ask saves the record and asks the scheduler. Others may change the record until the answer has
// come, ctx ends or patience is over. The error says why not all was carried out, and
// what the answer says in spite of it counts.
func (s *Session) Ask(ctx context.Context, patience time.Duration, steps ...wire.Step) (wire.Answer, error) {
	_ = s.Save() // it is shown again with the answer
	asked := s.live.asks.ask(steps...)
	s.live.turn.leave()
	answer, err := s.live.asks.wait(ctx, asked, patience)
	_ = s.live.turn.enter(context.Background()) // it is held for a moment
	s.Record = s.live.Record().clone()
	s.heed()
	return answer, err
}

// Settle waits until all that was asked before is answered.
func (s *Session) Settle(ctx context.Context, patience time.Duration) error {
	s.live.turn.leave()
	err := s.live.asks.settle(ctx, patience)
	_ = s.live.turn.enter(context.Background()) // it is held for a moment
	s.Record = s.live.Record().clone()
	s.heed()
	return err
}

// InFlight returns what is in flight, also for another session, or nil.
func (s *Session) InFlight() *queue.Given { return s.live.asks.now() }

// Own returns what is in flight where it is this session's, or nil.
func (s *Session) Own() *queue.Given { return s.live.InFlight() }

// Look is the step that finds out what became of the session's entry.
func (s *Session) Look() wire.Step {
	at := wire.Ref{}
	if g := s.InFlight(); g != nil {
		at = wire.RefOf(&g.Entry)
	}
	if w := s.Record.Work; w != nil && w.DeliveryID != at.Delivery {
		at = wire.Ref{Delivery: w.DeliveryID}
	}
	return wire.Step{Do: wire.Look, At: at}
}

// Checks reports whether the session's entry in flight is done only when a check has
// passed.
func (s *Session) Checks(g *queue.Given) bool { return s.Record.checks(&g.Entry) }

func (r *Record) checks(e *queue.Entry) bool { return r.Policy.Checked || e.Checked }

// Finishes is the step that ends the session's entry with what it has said, or has it checked.
func (s *Session) Finishes(g *queue.Given, said queue.Reply) wire.Step {
	step := wire.Step{Do: wire.Acknowledge, At: wire.RefOf(&g.Entry), Reply: said}
	if s.Checks(g) {
		step.Do = wire.Claim
	}
	return step
}

// heed takes over what the scheduler has said of the session's entry.
func (s *Session) heed() {
	r, g := s.Record, s.InFlight()
	switch w := r.Work; {
	case w == nil:
	case g == nil || g.Delivery != w.DeliveryID:
		switch s.live.asks.fate(w.DeliveryID) {
		case wire.Done:
			s.done = w.DeliveryID
			r.Acknowledged++
		case wire.Suspended:
			r.SetAside++
		case wire.Undone:
			r.Undone++
		default: // it is not known yet
			return
		}
		r.Continuations = 0
		r.Work, r.LastReply, r.Settles = nil, "", ""
		_ = s.Save() // what is not shown is shown later
	case g.Iteration > max(1, w.Iteration):
		r.Continuations = 0
	}
}

// Works records that an entry was handed over to the session.
func (s *Session) Works(g *queue.Given) {
	s.Record.Work = &Work{DeliveryID: g.Delivery, ID: g.ID, Source: g.Source, Attempt: g.Attempt, Iteration: g.Iteration, Since: time.Now()}
	s.Record.Continuations++
}

// Rests records that a hand-over to the session reached nobody.
func (s *Session) Rests() {
	if s.Record.Work != nil {
		s.Record.Work = nil
		s.Record.Continuations--
	}
}
