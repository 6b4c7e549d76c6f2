package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/queue"
)

// ErrNoSession means that somebody asks for an approval who is no agent's session.
var ErrNoSession = errors.New("only an agent's session asks for an approval")

// AskApproval files what the session of an agent asks for, and returns at once: with
// the answer, where a rule knows it.
func (s *Scheduler) AskApproval(ctx context.Context, agent string, r approval.Request) (approval.Request, error) {
	if agent == "" {
		return r, ErrNoSession
	}
	s.mu.Lock()
	m := s.fleet.find(agent)
	if m == nil || m.Removed() {
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
	if flight, err := queue.InFlight(cfg); err == nil && flight != nil && s.desk.Genuine(m.key, flight) { // newer than the report
		r.Entry = flight.DeliveryID
	}
	r, err := s.approvals.ledger.Ask(ctx, r, cfg.Approvals, time.Now())
	if err != nil {
		return r, err
	}
	s.noteApproval(r)
	s.lookAtApprovals(ctx)
	return r, nil
}

// AnswerApproval files what somebody says to a request. Callers have made sure that it
// is a person.
func (s *Scheduler) AnswerApproval(ctx context.Context, id string, a approval.Answer) (approval.Request, error) {
	r, err := s.approvals.ledger.Answer(ctx, id, a, time.Now())
	if err != nil {
		return r, err
	}
	s.noteApproval(r)
	s.lookAtApprovals(ctx)
	for _, m := range s.membersNow() {
		if m.key == r.Key {
			s.tendedTo(answerPatience, m)
		}
	}
	s.wakeChecks(r)
	return r, nil
}

// wakeChecks has the check go on that waits for an answer.
func (s *Scheduler) wakeChecks(r approval.Request) {
	for _, m := range s.membersNow() {
		if m.key == r.Key {
			m.wakeCheck()
		}
	}
}

// withdrawApprovals ends the requests that were asked for an entry which is gone.
func (s *Scheduler) withdrawApprovals(ctx context.Context, m *member, delivery, why string) {
	if delivery == "" {
		return
	}
	s.settleApprovals(ctx, func(r approval.Request) string {
		if r.Key == m.key && r.Entry == delivery {
			return why
		}
		return ""
	})
	s.approvalsMatterLess(ctx)
}

// settleApprovals ends requests, and those that nobody has answered in time.
func (s *Scheduler) settleApprovals(ctx context.Context, gone func(approval.Request) string) {
	ended, err := s.approvals.ledger.Settle(ctx, gone, time.Now())
	if err != nil {
		s.log.Warn("cannot end approvals", "err", err)
	}
	for _, r := range ended {
		s.noteApproval(r)
		s.wakeChecks(r)
	}
}

// undeclared is why nobody needs an answer: the file has no such agent any more.
func (s *Scheduler) undeclared(r approval.Request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.fleet.members {
		if m.key == r.Key && !m.Removed() {
			return ""
		}
	}
	switch now := s.fleet.find(r.Agent); {
	case now != nil && now.key != "": // its name belongs to another one
		return agentReplaced
	case s.fleet.declared.Agent(r.Agent) != nil: // another run may have it
		return ""
	}
	return agentRemoved
}

// AnswerStopped is AnswerApproval for a fleet that no scheduler runs: the next one
// tells the agent.
func AnswerStopped(ctx context.Context, stateDir, id string, a approval.Answer) (approval.Request, error) {
	r, err := approval.Of(stateDir).Answer(ctx, id, a, time.Now())
	if err != nil {
		return r, err
	}
	j, err := journal.Open(stateDir)
	if err != nil {
		return r, err
	}
	e := approvalEvent(r)
	e.At = time.Now()
	return r, errors.Join(j.Add(e), j.Close())
}

// SettleStopped withdraws, for a fleet that no scheduler runs, the requests that nobody
// needs any more, or that gone, if it is not nil, returns a reason for.
func SettleStopped(ctx context.Context, f *config.Fleet, stateDir string, gone func(approval.Request) string) error {
	known, err := memory.Read(stateDir)
	if err != nil {
		return err
	}
	now := time.Now()
	who, desk := known.Follow(f.Agents, now).Declared(), proving.New(proving.Options{StateDir: stateDir, Log: slog.New(slog.DiscardHandler)})
	var unread error
	silent := map[string]bool{}
	ended, err := approval.Of(stateDir).Settle(ctx, func(r approval.Request) (why string) {
		a := f.Agent(r.Agent)
		if gone != nil {
			why = gone(r)
		}
		switch {
		case why != "":
		case a == nil:
			why = agentRemoved
		case r.Key != "" && who[a.Name].Key != r.Key:
			why = agentReplaced
		case !silent[a.Name]:
			why, err = answering(a.Name, func() (string, error) { return desk.Unneeded(a, r.Key, r) })
			silent[a.Name] = errors.Is(err, errSilent)
			unread = errors.Join(unread, err)
		}
		return why
	}, now)
	if err = errors.Join(err, unread); len(ended) == 0 {
		return err
	}
	j, failed := journal.Open(stateDir)
	if failed != nil {
		return errors.Join(err, failed)
	}
	for _, r := range ended {
		e := approvalEvent(r)
		e.At = now
		err = errors.Join(err, j.Add(e))
	}
	return errors.Join(err, j.Close())
}

// errSilent means that a directory neither opens nor fails to.
var errSilent = errors.New("its directory does not answer")

// answering calls what looks into an agent's directory, and waits no longer for it than a
// person likes to.
func answering(agent string, look func() (string, error)) (string, error) {
	type found struct {
		text string
		err  error
	}
	got := make(chan found, 1)
	go func() {
		text, err := look()
		got <- found{text, err}
	}()
	clock := time.NewTimer(answerPatience)
	defer clock.Stop()
	select {
	case f := <-got:
		return f.text, f.err
	case <-clock.C:
		return "", fmt.Errorf("cannot tell whether the requests of agent %q are needed: %w", agent, errSilent)
	}
}

// Why nobody needs what an agent has asked for.
const (
	agentRemoved  = "the agent was removed"
	agentReplaced = "the agent was replaced"
)

// noteApproval writes down what has become of a request.
func (s *Scheduler) noteApproval(r approval.Request) {
	e := approvalEvent(r)
	s.records.note(e)
	s.log.Info("approval "+e.State, "agent", r.Agent, "approval", r.ID, "why", e.Reason.String())
}

// approvalEvent says what has become of a request: when, who, and why.
func approvalEvent(r approval.Request) journal.Event {
	e := journal.Event{Agent: r.Agent, Kind: journal.Approval, State: string(r.State), Approval: r.ID, Session: r.Session, Detail: foreign.Text(r.Text())}
	if r.Waits() {
		e.Until = r.Until
		return e
	}
	if r.Needless != "" {
		e.State = string(approval.Withdrawn)
	}
	e.Reason = foreign.Text(r.Answered())
	return e
}
