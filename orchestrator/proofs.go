package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// check begins the check of a member's entry in flight, if one is to begin.
func (s *Scheduler) check(m *member) {
	if !s.fleet.works() || m.Removed() && m.live == nil || !m.BeginCheck() {
		return
	}
	select {
	case <-m.wake: // meant for an earlier one
	default:
	}
	ctx, cancel := context.WithCancel(s.work)
	m.voidCheck = cancel
	s.wg.Go(func() {
		defer cancel()
		examinee{s, m}.prove(ctx)
	})
}

// sameValue reports whether two pointers are to the same value, or both to none.
func sameValue[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// checkChanges takes what the live session says of its check: another one is to be
// made, or it goes on with its work. A check that runs compares itself with the queue: the
// report may be late, and be about the check before.
func (m *member) checkChanges(now *session.Checking) {
	tap(m.look)
	if now != nil {
		m.ToCheck()
	}
}

// examinee is a member as room proving knows it.
type examinee struct {
	s *Scheduler
	m *member
}

// prove has the entry in flight of a member checked, with or without a session.
func (e examinee) prove(ctx context.Context) {
	applied := e.s.desk.Prove(ctx, proving.Case{
		Key: e.m.key, Wake: e.m.wake, Look: e.m.look, Agent: e.declared, Worked: e.worked, Conversation: e.conversation, Aside: e.setAside, HasMoved: e.moved,
		Judged: func() {
			e.s.happened(e.m, e.m.Judged)
			e.s.consent.LookIfOpen(ctx)
		},
		Tell: func(p status.Proof) { e.s.happened(e.m, func(time.Time) { e.m.Proving(p) }) },
	})
	e.s.happened(e.m, func(now time.Time) {
		for _, v := range applied {
			switch {
			case v.Passed:
				e.m.Proven()
				e.s.fleet.hasDone(e.m, now)
			case v.GiveUp != "":
				e.m.DeadLettered()
			}
		}
		if e.s.fleet.works() {
			e.m.CheckEnded()
		}
	})
}

// declared returns the member's definition: what has to be passed follows the file at
// once.
func (e examinee) declared() *config.Agent {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.m.Declared()
}

func (e examinee) worked() time.Duration {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.m.Worked(e.s.opt.Now())
}

// moved tells the session that a verdict has moved the entry in flight.
func (e examinee) moved() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.m.live != nil {
		e.m.live.Order(session.Order{Moved: true})
	}
}

// setAside says that the entry in flight was set aside.
func (e examinee) setAside(delivery string) {
	e.s.happened(e.m, func(now time.Time) {
		e.m.Judged(now)
		e.m.SetAside(append(e.m.WaitAside(), delivery))
	})
}

// conversation returns the one in which the entry in flight was worked on, or "".
func (e examinee) conversation(f *inbox.InFlight) string {
	return launch.Of(e.s.opt.Store.Reader, e.m.key, f)
}

// wakeCheck has a check that waits tried at once.
func (m *member) wakeCheck() { tap(m.wake) }

// tap leaves one word in a channel.
func tap(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// handedOver remembers what the session was given, before it can have worked on it for
// long.
func (c course) handedOver(w *hook.Work) {
	f, err := c.desk.HandedOver(c.def, c.m.key)
	if err != nil {
		c.log.Warn("cannot remember what was handed over", "agent", c.m.Name, "err", err)
	}
	if f != nil && f.DeliveryID == w.DeliveryID {
		c.opt.HandedOver(c.m.Name, f)
	}
}

// count is what a session has done, as its queue and the verdicts tell. Of an agent that
// has to prove everything, or whose files call something done that is not, nothing else
// counts as done: no reader gets another number.
type count struct {
	mark   inbox.OutboxMark // how far its queue was compared
	says   int              // how much its session says to have done
	done   map[string]bool  // the deliveries that are done
	forged bool             // the outbox has records of others
}

// counts has a report say what the session has demonstrably done.
func (c course) counts(n *count, r session.Report) session.Report {
	said := r.Acknowledged
	if r.Outcome != nil {
		said = max(said, r.Outcome.Acknowledged)
	}
	if c.isNews(n, r, said) && c.compare(n) {
		c.keeps(&n.mark)
	}
	if n.says = max(n.says, said); !c.proves(n) {
		return r
	}
	r.Acknowledged = min(r.Acknowledged, len(n.done))
	if r.Outcome != nil {
		o := *r.Outcome
		o.Acknowledged, r.Outcome = min(o.Acknowledged, len(n.done)), &o
	}
	r.Answers = slices.Clone(r.Answers)
	for i := range r.Answers {
		if n.lacks(r.Answers[i]) {
			r.Answers[i].Done = ""
		}
	}
	return r
}

// isNews reports whether a report says that more is done than was compared: said is how much
// it says. A verdict may be applied only after the session has said so. So, where things have
// to be proven, what was not done when it was compared is asked for again: at the session's
// end, and when a Stop names it.
func (c course) isNews(n *count, r session.Report, said int) bool {
	switch {
	case said > n.says:
		return true
	case !c.proves(n):
		return false
	}
	return r.Outcome != nil && said > len(n.done) || slices.ContainsFunc(r.Answers, n.lacks)
}

func (c course) proves(n *count) bool { return c.def.Until != nil || n.forged }

// lacks reports whether an answer calls something done that is not.
func (n *count) lacks(a hook.Answered) bool { return a.Done != "" && !n.done[a.Done] }

// compare looks for what the files of the session's queue call done although it is
// not proven, and reports whether it could tell. If not, the mark is where it was.
func (c course) compare(n *count) bool {
	is, err := c.desk.Forged(context.Background(), c.def, c.m.key, &n.mark)
	if err != nil {
		c.log.Warn("cannot compare what is called done with what is proven", "agent", c.m.Name, "err", err)
		return false
	}
	n.forged = n.forged || is.Forged
	for _, d := range is.Done {
		if d.DeliveryID != "" {
			n.done[d.DeliveryID] = true
		}
		c.opt.Done(c.m.Name, d)
	}
	if len(is.Filed) > 0 {
		c.happened(c.m, func(time.Time) { c.m.DeadLettered() })
	}
	return true
}

// keeps has the mark outlive this scheduler.
func (c course) keeps(m *inbox.OutboxMark) {
	if err := c.desk.Marks(c.def, c.m.key, m); err != nil {
		c.log.Warn("cannot keep how far a queue was compared with what is proven", "agent", c.m.Name, "err", err)
	}
}

// settles compares once more when a session has ended, and what is demanded of its
// queue's entries. If it cannot compare, both are owed: what the outbox calls done would
// be filed twice, as gone and as forged.
func (c course) settles(n *count) {
	if !c.compare(n) {
		c.keeps(&n.mark)
		return
	}
	c.keeps(nil)
	forged, err := c.desk.Settle(context.Background(), c.def)
	if err != nil {
		c.log.Warn("cannot tell what has become of what has to be proven", "agent", c.m.Name, "err", err)
	}
	if forged > 0 {
		c.happened(c.m, func(time.Time) { c.m.DeadLettered() })
	}
}

// owed compares what an earlier session has left, if that could not be done when it had
// ended. After an error no other session may begin: its mark would take the place of the
// earlier one's, and what that one has forged would never be found.
func (c course) owed() error {
	book, err := c.desk.Book(c.m.key)
	if err != nil || book.Mark() == nil {
		return err
	}
	forged, err := c.desk.Left(context.Background(), c.def, c.m.key)
	if forged > 0 {
		c.happened(c.m, func(time.Time) { c.m.DeadLettered() })
	}
	if err != nil {
		return fmt.Errorf("cannot compare what the last session has left with what is proven: %w", err)
	}
	return nil
}
