package orchestrator

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/consent"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/status"
)

// startPatience is how long a run waits, before it begins, for answers that are owed.
const startPatience = 10 * time.Second

// AskApproval files what the session of an agent asks for, and returns at once: with
// the answer, where a rule knows it.
func (s *Scheduler) AskApproval(ctx context.Context, agent string, r approval.Request) (approval.Request, error) {
	s.mu.Lock()
	m := s.fleet.find(agent)
	if m == nil {
		s.mu.Unlock()
		return r, &UnknownAgentError{Agent: agent}
	}
	r.Agent, r.Key = agent, m.key
	r.Session, _ = m.Session()
	if work := m.Reported().Work; work != nil {
		r.Entry = work.DeliveryID
	}
	cfg := m.Declared()
	s.mu.Unlock()
	return s.consent.Ask(ctx, cfg, r)
}

// AnswerApproval files what somebody says to a request. Callers have made sure that it
// is a person.
func (s *Scheduler) AnswerApproval(ctx context.Context, id string, a approval.Answer) (approval.Request, error) {
	return s.consent.Answer(ctx, id, a)
}

// WithdrawApprovals ends what agents ask for that nobody needs any more.
func (s *Scheduler) WithdrawApprovals(ctx context.Context, w consent.Withdrawal) error {
	return s.consent.Settle(ctx, w.Gone)
}

// ApprovalsChanges is how often what agents ask for has changed in this run.
func (s *Scheduler) ApprovalsChanges() uint64 { return s.consent.Changes() }

// NeedsToken reports whether only who has a token may answer a request.
func (s *Scheduler) NeedsToken(id string) bool { return s.consent.NeedsToken(id) }

// Declared returns the fleet as its file said when it was loaded last.
func (s *Scheduler) Declared() *config.Fleet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.declared
}

// petitioners are the members as room consent knows them.
type petitioners struct{ s *Scheduler }

var _ consent.Fleet = petitioners{}

// Agents implements consent.Fleet.
func (p petitioners) Agents() (all []consent.Agent) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, m := range p.s.fleet.members {
		all = append(all, petitioner{p.s, m})
	}
	return all
}

// Declared implements consent.Fleet.
func (p petitioners) Declared() *config.Fleet { return p.s.Declared() }

// petitioner is one of them.
type petitioner struct {
	s *Scheduler
	m *member
}

var _ consent.Agent = petitioner{}

// Now implements consent.Agent.
func (p petitioner) Now() consent.Standing {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	is := p.m.Describe()
	return consent.Standing{
		Name: p.m.Name, Key: p.m.key, Removed: p.m.Removed(), Declared: p.m.Declared(),
		Awaits: is.Approval, Aside: p.m.WaitAside(), AwaitsAside: is.AwaitsAside,
	}
}

// Awaits implements consent.Agent.
func (p petitioner) Awaits(now *status.Approval) {
	p.s.happened(p.m, func(time.Time) { p.m.Awaits(now) })
}

// AwaitsAside implements consent.Agent.
func (p petitioner) AwaitsAside(now *status.Approval) {
	p.s.happened(p.m, func(time.Time) { p.m.AwaitsAside(now) })
}

// Took implements consent.Agent.
func (p petitioner) Took(w proving.Waiting) {
	p.s.happened(p.m, func(now time.Time) {
		for _, v := range w.Applied {
			switch {
			case v.Passed:
				p.m.ProvenAside()
				p.s.fleet.hasDone(p.m, now)
			case v.GiveUp != "":
				p.m.DeadLettered()
			}
		}
		p.m.SetAside(w.Deliveries)
		if w.Returning > 0 {
			p.m.Returns()
		}
	})
}

// Tended implements consent.Agent.
func (p petitioner) Tended(err error) {
	p.s.mu.Lock()
	news := err != nil || p.m.untended.is != nil
	p.s.mu.Unlock()
	if news {
		p.s.happened(p.m, func(now time.Time) { p.m.tended(err, now) })
	}
}

// IsAnswered implements consent.Agent.
func (p petitioner) IsAnswered() { p.s.happened(p.m, p.m.IsAnswered) }

// CheckAgain implements consent.Agent.
func (p petitioner) CheckAgain() { p.m.wakeCheck() }

// Append implements consent.Agent.
func (p petitioner) Append(ctx context.Context, cfg *config.Agent, l inbox.Letter) (func(), error) {
	return fired(p).Append(ctx, cfg, nil, l)
}

// Holds implements consent.Agent.
func (p petitioner) Holds(cfg *config.Agent, prefix string) (bool, error) {
	return fired(p).Holds(cfg, prefix)
}
