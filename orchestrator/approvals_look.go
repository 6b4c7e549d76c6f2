package orchestrator

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// approvals keeps agents from working while they wait for a person's answer, and hands
// the answers over. It acts on what stands in the ledger: who answers without a running
// scheduler is found at the next look.
//
// A look closes the gate of an agent that waits, and opens no directory. Whatever does
// is done by agent, in a goroutine of its own: one that hangs delays no other.
type approvals struct {
	ledger approval.Register
	// looking is held during a look, and guards what follows.
	looking sync.Mutex
	// The last look was into what stamp tells, for the fleet as declared; open is true
	// if requests wait or answers are owed.
	stamp    approval.Stamp
	declared *config.Fleet
	looked   time.Time
	open     bool
	tended   map[*member]*tending
	// routed are the requests whose answers come with the next hand-over of the entry
	// in flight: nothing else can come before.
	routed map[string]bool
}

// tending is what is being done about one agent's requests.
type tending struct {
	again bool          // something has changed meanwhile
	done  chan struct{} // closed at its end
}

const (
	// approvalsEvery is how often it is checked whether the ledger has changed without
	// a hint, or what it says is of no use any more; approvalsAnyway how often it is
	// read whatever it looks like.
	approvalsEvery  = 30 * time.Second
	approvalsAnyway = 10 * time.Minute
	// answerPatience is how long who answers waits until the answer is queued;
	// startPatience how long a run waits, before it begins, for all that are owed.
	answerPatience = 2 * time.Second
	startPatience  = 10 * time.Second
	// tendPatience is how long the lock of an agent's queue is waited for; then it is
	// tried again at the next look.
	tendPatience = 20 * time.Second
)

// tendApprovals looks into the ledger now and then, until ctx ends.
func (s *Scheduler) tendApprovals(ctx context.Context) {
	ticker := time.NewTicker(approvalsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if s.approvalsMayDiffer(time.Now()) {
				s.lookAtApprovals(ctx)
			}
		}
	}
}

// approvalsMayDiffer reports whether a look may find something else than the last one.
func (s *Scheduler) approvalsMayDiffer(now time.Time) bool {
	s.mu.Lock()
	declared := s.fleet.declared
	s.mu.Unlock()
	a := &s.approvals
	a.looking.Lock()
	defer a.looking.Unlock()
	return a.open || a.stamp != a.ledger.Stamp() || a.declared != declared || now.Sub(a.looked) >= approvalsAnyway || now.Before(a.looked)
}

// lookAtApprovals brings the agents in line with the ledger: who waits is held at once,
// and goes on after its answer is where it finds it next.
func (s *Scheduler) lookAtApprovals(ctx context.Context) {
	a := &s.approvals
	a.looking.Lock()
	defer a.looking.Unlock()
	s.mu.Lock()
	declared := s.fleet.declared
	s.mu.Unlock()
	stamp := a.ledger.Stamp()
	s.settleApprovals(ctx, s.undeclared)
	waiting, err := a.ledger.Waiting()
	done, err2 := a.ledger.Done()
	if err = errors.Join(err, err2); err != nil {
		s.log.Warn(err.Error())
		stamp = approval.Stamp{} // it is tried again
	}
	open := append(slices.DeleteFunc(done, func(r approval.Request) bool { return !r.Owes() }), waiting...)
	a.stamp, a.declared, a.looked, a.open = stamp, declared, time.Now(), len(open) > 0
	maps.DeleteFunc(a.routed, func(id string, _ bool) bool {
		return !slices.ContainsFunc(open, func(r approval.Request) bool { return r.ID == id })
	})
	for _, m := range s.membersNow() {
		s.mu.Lock()
		removed := m.Removed()
		s.mu.Unlock()
		mine, holdsUp := func(r approval.Request) bool { return r.Key == m.key && !removed }, s.holdsUp(m)
		asks := status.ApprovalOf(waiting, func(r approval.Request) bool { return mine(r) && holdsUp(r) })
		owed := status.ApprovalOf(open, func(r approval.Request) bool { return mine(r) && holdsUp(r) && !a.routed[r.ID] })
		switch {
		case asks != nil:
			s.awaits(m, asks)
		case owed != nil:
			s.awaitsStill(m, owed)
		case a.tended[m] == nil:
			s.awaits(m, nil)
		}
		if slices.ContainsFunc(open, mine) || s.hasAsides(m) {
			s.tend(ctx, m)
		}
	}
}

// approvalsMatterLess looks, if anything is open, after what may have made it needless.
func (s *Scheduler) approvalsMatterLess(ctx context.Context) {
	s.approvals.looking.Lock()
	open := s.approvals.open
	s.approvals.looking.Unlock()
	if open {
		s.lookAtApprovals(ctx)
	}
}

// awaits says what a member waits for; nil: nothing.
func (s *Scheduler) awaits(m *member, now *status.Approval) {
	s.mu.Lock()
	same := sameValue(m.Describe().Approval, now)
	s.mu.Unlock()
	if !same {
		s.happened(m, func(time.Time) { m.Awaits(now) })
	}
}

// awaitsStill holds a member that has its answer until it is queued.
func (s *Scheduler) awaitsStill(m *member, owed *status.Approval) {
	s.mu.Lock()
	held := m.Describe().Approval != nil
	s.mu.Unlock()
	if !held {
		s.awaits(m, owed)
	}
}

// tend sees to the requests of a member, beside the others. Its caller holds
// approvals.looking.
func (s *Scheduler) tend(ctx context.Context, m *member) {
	a := &s.approvals
	if t := a.tended[m]; t != nil {
		t.again = true
		return
	}
	if a.tended == nil {
		a.tended = map[*member]*tending{}
	}
	t := &tending{done: make(chan struct{})}
	a.tended[m] = t
	ctx = context.WithoutCancel(ctx)
	s.wg.Go(func() {
		defer close(t.done)
		for again := true; again; {
			ok := s.tendTo(ctx, m)
			a.looking.Lock()
			if again, t.again = t.again, false; !again {
				delete(a.tended, m)
			}
			if !ok {
				a.stamp = approval.Stamp{}
			}
			a.looking.Unlock()
		}
	})
}

// tendedTo waits until what is being done about the requests of members is done, but no
// longer than patience.
func (s *Scheduler) tendedTo(patience time.Duration, members ...*member) {
	clock := time.NewTimer(patience)
	defer clock.Stop()
	for _, m := range members {
		s.approvals.looking.Lock()
		t := s.approvals.tended[m]
		s.approvals.looking.Unlock()
		if t == nil {
			continue
		}
		select {
		case <-t.done:
		case <-clock.C:
			return
		}
	}
}

// tendTo withdraws what nobody needs of a member's requests, brings the answers on
// their way and, if nothing else waits, lets it go on. It returns false where that has
// to be tried again.
func (s *Scheduler) tendTo(ctx context.Context, m *member) bool {
	ctx, cancel := context.WithTimeout(ctx, tendPatience)
	defer cancel()
	s.mu.Lock()
	cfg, gone := m.Declared(), m.Removed()
	s.mu.Unlock()
	if gone {
		return true
	}
	if !s.tendAsides(ctx, m, cfg) {
		return false
	}
	var failed, unsure error
	s.settleApprovals(ctx, func(r approval.Request) string {
		if r.Key != m.key {
			return ""
		}
		why, err := s.desk.Unneeded(cfg, m.key, r)
		if failed = errors.Join(failed, err); r.Owes() {
			unsure = errors.Join(unsure, err)
		}
		return why
	})
	if failed != nil {
		s.log.Warn("cannot tell whether approvals are needed", "agent", m.Name, "err", failed)
	}
	if unsure != nil {
		return false
	}
	if err := s.tellAnswers(ctx, m, cfg); err != nil {
		s.log.Warn("cannot queue the answer to an approval; it is tried again", "agent", m.Name, "err", err)
		return false
	}
	waiting, err := s.approvals.ledger.Waiting()
	if holdsUp := s.holdsUp(m); err == nil {
		s.awaits(m, status.ApprovalOf(waiting, func(r approval.Request) bool { return r.Key == m.key && holdsUp(r) }))
	}
	return err == nil && failed == nil
}

// tellAnswers brings the answers that a member does not know on their way: one to what
// was asked for an entry that is to be proven comes with its next hand-over, which
// comes before everything else (proving); every other one is queued.
func (s *Scheduler) tellAnswers(ctx context.Context, m *member, cfg *config.Agent) error {
	done, err := s.approvals.ledger.Done()
	if err != nil {
		return err
	}
	for _, r := range done {
		if r.Key != m.key || !r.Owes() {
			continue
		}
		flight, err := queue.InFlight(cfg)
		switch {
		case err != nil:
			return err
		case flight != nil && flight.DeliveryID == r.Entry && s.desk.Demands(cfg, flight):
			s.route(m, r)
		default:
			err = s.tellAnswer(ctx, m, cfg, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// route leaves an answer to the next hand-over of the entry in flight.
func (s *Scheduler) route(m *member, r approval.Request) {
	a := &s.approvals
	a.looking.Lock()
	was := a.routed[r.ID]
	if a.routed == nil {
		a.routed = map[string]bool{}
	}
	a.routed[r.ID] = true
	a.looking.Unlock()
	if !was {
		s.happened(m, m.IsAnswered)
		m.wakeCheck()
	}
}

// answerPrefix begins the ids of the entries by which agents learn answers.
const answerPrefix = "approval-"

// tellAnswer queues one answer before all that waits behind it; a queue that is full
// is no reason against it, and it is nothing that has to be proven or approved.
func (s *Scheduler) tellAnswer(ctx context.Context, m *member, cfg *config.Agent, r approval.Request) error {
	l := inbox.Letter{ID: answerPrefix + r.ID, Source: "approval", Prompt: r.HandOver(), Idempotent: true, Most: math.MaxInt, Urgent: true}
	if cfg.Until != nil {
		if _, err := s.desk.Demand(cfg, "", l, nil); err != nil {
			return err
		}
	}
	begin, err := fired{s, m}.Append(ctx, cfg, nil, l)
	if err != nil && !errors.Is(err, inbox.ErrDuplicate) {
		return err
	}
	if err := s.approvals.ledger.Tell(ctx, r.ID); err != nil {
		return err
	}
	s.happened(m, m.IsAnswered)
	if begin != nil {
		begin()
	}
	return nil
}

// answersQueued lets agents go on with their conversations for which an earlier run has
// queued an answer.
func (s *Scheduler) answersQueued() {
	for _, m := range s.membersNow() {
		s.mu.Lock()
		cfg := m.Def()
		s.mu.Unlock()
		if held, err := (fired{s, m}).Holds(cfg, answerPrefix); err == nil && held {
			s.happened(m, m.IsAnswered)
		}
	}
}

func (s *Scheduler) membersNow() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.fleet.members)
}
