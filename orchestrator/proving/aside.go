package proving

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// Waiting is what is set aside of an agent's queue.
type Waiting struct {
	// Deliveries wait for an answer; Returning are to be handed over again.
	Deliveries []string
	Returning  int
	// Applied are the verdicts by which others have ended.
	Applied []inbox.Verdict
}

// asides guards, for each agent, what is set aside: one at a time brings the state
// directory and the agent's file in line.
type asides struct{ locks sync.Map }

func (a *asides) lock(key string) (unlock func()) {
	l, _ := a.locks.LoadOrStore(key, make(chan struct{}, 1))
	one := l.(chan struct{})
	one <- struct{}{}
	return func() { <-one }
}

// aside reports whether an entry that waits for a person is to be set aside: its until:
// says so, and there is room.
func (r *run) aside(s subject) bool {
	if s.until == nil || !s.until.Aside {
		return false
	}
	all, err := ledger.Asides(r.opt.StateDir, r.Key)
	all = slices.DeleteFunc(all, func(a ledger.Aside) bool { return a.Flight.DeliveryID == s.flight.DeliveryID })
	return err == nil && len(all) < inbox.MostAside
}

// setAside takes the entry in flight out of the queue's order. The state directory knows
// it first: killed in between it is in flight, and waits there.
func (r *run) setAside(ctx context.Context, s subject) error {
	defer r.asides.lock(r.Key)()
	now := time.Now()
	a := ledger.Aside{Flight: s.flight.AsideSince(now)}
	switch {
	case s.apart != nil: // a second time
		a.Conversation = r.ConversationOf(r.Key, s.flight)
	case r.Conversation != nil:
		a.Conversation = r.Conversation(s.flight)
	}
	if err := ledger.KeepAside(r.opt.StateDir, r.Key, a); err != nil {
		return err
	}
	if err := queue.SetAside(ctx, s.agent, s.flight, now); err != nil {
		if !errors.Is(err, inbox.ErrStale) {
			return err
		}
		if dropped := ledger.DropAside(r.opt.StateDir, r.Key, s.flight.DeliveryID); dropped != nil || !r.looksAgain() {
			return errors.Join(err, dropped)
		}
		return nil
	}
	r.stale = 0
	r.moved()
	r.opt.Note(journal.Event{Agent: s.agent.Name, Kind: journal.Aside, Entry: s.flight.DeliveryID, Iteration: s.flight.Iteration, Reason: "waits for approval; the queue goes on"})
	if r.Aside != nil {
		r.Aside(s.flight.DeliveryID)
	}
	return nil
}

// ConversationOf returns the client's conversation in which an entry that was set aside
// goes on; "" if it was not, or that is not known.
func (d *Desk) ConversationOf(key string, f *inbox.InFlight) string {
	if f == nil || f.Aside == nil {
		return ""
	}
	all, _ := ledger.Asides(d.opt.StateDir, key) // what cannot be read begins a new one
	for _, a := range all {
		if a.Flight.DeliveryID == f.DeliveryID {
			return a.Conversation
		}
	}
	return ""
}

// NotAside forgets an entry that was set aside once and ends otherwise than by a verdict:
// before its last trace goes, or it would be put back.
func (d *Desk) NotAside(key, delivery string) error {
	return ledger.DropAside(d.opt.StateDir, key, delivery)
}

// NoAsides reports whether nothing is set aside of any agent.
func (d *Desk) NoAsides() (bool, error) { return ledger.NoAsides(d.opt.StateDir) }

// Dropped forgets what was set aside of an agent's queue and is a dead letter now. Whoever
// queues dead letters again, or deletes them, calls it before: nothing else tells then
// that these have ended.
func (d *Desk) Dropped(ctx context.Context, a *config.Agent, key string) error {
	defer d.asides.lock(key)()
	all, err := ledger.Asides(d.opt.StateDir, key)
	if len(all) == 0 || err != nil {
		return err
	}
	_, err = d.reconcileQuietly(ctx, a, key)
	return err
}

// ConversationGone has entries that were set aside not go on in a conversation any more.
func (d *Desk) ConversationGone(key, conversation string) error {
	defer d.asides.lock(key)()
	all, err := ledger.Asides(d.opt.StateDir, key)
	for _, a := range all {
		if a.Conversation == conversation && conversation != "" {
			a.Conversation = ""
			err = errors.Join(err, ledger.KeepAside(d.opt.StateDir, key, a))
		}
	}
	return err
}

// Return puts the entry in flight that was answered first of those that are to be handed
// over again; nil if there is none.
func (d *Desk) Return(ctx context.Context, a *config.Agent, key string) (*inbox.InFlight, error) {
	defer d.asides.lock(key)()
	all, err := d.reconcile(ctx, a, key)
	if err != nil || !slices.ContainsFunc(all, func(e ledger.Aside) bool { return e.Flight.Returns() }) {
		return nil, err
	}
	return queue.BringBack(ctx, a)
}

// Tend applies what people have answered to the entries of an agent that are set aside: a
// yes ends them, after anything else they are to be handed over again.
func (d *Desk) Tend(ctx context.Context, a *config.Agent, key string) (w Waiting, err error) {
	defer d.asides.lock(key)()
	all, err := d.reconcile(ctx, a, key)
	if err != nil || len(all) == 0 {
		return w, err
	}
	book, err := d.Book(key)
	if err != nil {
		return w, err
	}
	flight, err := queue.InFlight(a)
	if err != nil {
		return w, err
	}
	for _, e := range all {
		if flight != nil && flight.DeliveryID == e.Flight.DeliveryID {
			continue // it has come back
		}
		if e.Flight.State == inbox.Checking {
			r := run{Desk: d, Case: Case{Key: key}, apart: true}
			v, failed := r.answered(ctx, a, book, &e)
			if v != nil {
				w.Applied = append(w.Applied, *v)
			}
			err = errors.Join(err, failed)
			if v != nil && (v.Passed || v.GiveUp != "") {
				continue
			}
		}
		if e.Flight.Returns() {
			w.Returning++
		} else {
			w.Deliveries = append(w.Deliveries, e.Flight.DeliveryID)
		}
	}
	return w, err
}

// answered decides about one entry that is set aside, and carries the verdict out. Without
// one it goes on waiting.
func (r *run) answered(ctx context.Context, a *config.Agent, book *ledger.Book, e *ledger.Aside) (*inbox.Verdict, error) {
	f, c := &e.Flight, book.Course(e.Flight.DeliveryID)
	until, _, err := r.nearest(a, f, book, c)
	if err != nil {
		return nil, err
	}
	s := subject{agent: a, flight: f, until: until, book: book, origin: origin{is: genuine, apart: f}}
	v, err := r.decideApart(ctx, s, c)
	if err != nil || v == nil {
		return nil, err
	}
	if !v.Passed && v.GiveUp == "" {
		return r.returns(ctx, s, e, v)
	}
	out, _, err := r.apply(ctx, s, v)
	if out == nil || err != nil {
		return nil, err
	}
	return out, ledger.DropAside(r.opt.StateDir, r.Key, f.DeliveryID)
}

// decideApart is decide for an entry that is set aside. Nothing is run for it.
func (r *run) decideApart(ctx context.Context, s subject, c ledger.Course) (*ledger.Verdict, error) {
	v := s.verdict(c)
	switch stands := c.Stands(v); {
	case stands != nil:
		return stands, nil
	case s.until == nil:
		v.By, v.Why, v.Passed = "none", "nothing has to be passed any more", true
		c.Verdict = &v
		return &v, s.book.Keep(c)
	case !c.Waits(v):
		v.Why, v.Output = "what it has to pass was changed", "While this waited for approval, what it has to pass was changed."
		return r.notPassed(s, c, v, v.Output, false)
	}
	return r.approved(ctx, s, c, v)
}

// returns has an entry handed over again: the state directory says so first, and then the
// agent's file.
func (r *run) returns(ctx context.Context, s subject, e *ledger.Aside, v *ledger.Verdict) (*inbox.Verdict, error) {
	out := r.inForm(s, v)
	e.Flight = s.flight.Again(*out)
	if err := ledger.KeepAside(r.opt.StateDir, r.Key, *e); err != nil {
		return nil, err
	}
	r.settled(s, v)
	r.note(s.agent, v)
	_, err := r.reconcileQuietly(ctx, s.agent, r.Key)
	return out, err
}

// reconcile makes an agent's file say what the state directory knows to be set aside, and
// returns that. What others have done to the file is undone, and told.
func (d *Desk) reconcile(ctx context.Context, a *config.Agent, key string) ([]ledger.Aside, error) {
	found, err := d.reconcileQuietly(ctx, a, key)
	if err != nil {
		return nil, err
	}
	for _, delivery := range found.Removed {
		d.opt.Log.Error("somebody has changed what waits for approval; it is put back", "agent", a.Name, "entry", delivery)
		d.opt.Note(journal.Event{Agent: a.Name, Kind: journal.Forged, Entry: delivery, Reason: "somebody has changed .waiting.jsonl; the prompt waits as before"})
	}
	for _, f := range found.Unknown {
		d.opt.Log.Warn("a prompt waits that was not set aside by this fleet; it is handed over again", "agent", a.Name, "entry", f.DeliveryID)
		f = f.Again(inbox.Verdict{Output: "It is not known who was asked to approve this.", Now: time.Now()})
		if err := ledger.KeepAside(d.opt.StateDir, key, ledger.Aside{Flight: f}); err != nil {
			return nil, err
		}
	}
	if len(found.Unknown) > 0 {
		if _, err := d.reconcileQuietly(ctx, a, key); err != nil {
			return nil, err
		}
	}
	return ledger.Asides(d.opt.StateDir, key)
}

func (d *Desk) reconcileQuietly(ctx context.Context, a *config.Agent, key string) (found inbox.Reconciled, err error) {
	book, err := d.Book(key)
	if err != nil {
		return found, err
	}
	ended := func(delivery string) bool {
		c := book.Course(delivery)
		return book.Passed(delivery) && (c.Verdict == nil || c.Verdict.Applied) // else it is about to be applied
	}
	known := func() (want []inbox.InFlight, err error) {
		all, err := ledger.Asides(d.opt.StateDir, key)
		if errors.Is(err, ledger.ErrMovedAway) {
			d.opt.Log.Error("it is not known what one prompt waits for; it is handed over again", "agent", a.Name, "err", err)
			err = nil
		}
		for _, e := range all {
			if !ended(e.Flight.DeliveryID) {
				want = append(want, e.Flight)
			} else {
				err = errors.Join(err, ledger.DropAside(d.opt.StateDir, key, e.Flight.DeliveryID))
			}
		}
		return want, err
	}
	found, err = queue.KeepWaiting(ctx, a, known, ended)
	found.Removed = slices.DeleteFunc(found.Removed, book.Passed) // its verdict was carried out before a kill
	for _, delivery := range slices.Concat(found.Ended, found.Queued) {
		err = errors.Join(err, ledger.DropAside(d.opt.StateDir, key, delivery))
	}
	return found, err
}
