package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// startTriggers starts what fires: for a run with Once nothing, or, with Fire,
// everything once.
func (s *Scheduler) startTriggers(ctx context.Context) {
	if !s.opt.Once {
		s.firing.Start(ctx)
	}
	for _, m := range s.fleet.members {
		switch {
		case !s.opt.Once:
			m.triggers.Set(ctx, m.Def())
		case s.opt.Fire:
			s.fireAll(ctx, m, m.Def())
		}
	}
}

// fireAll fires an agent's triggers once.
func (s *Scheduler) fireAll(ctx context.Context, m *member, cfg *config.Agent) {
	s.happened(nil, func(time.Time) { s.fleet.once.fires++ })
	s.wg.Go(func() {
		unfired := m.triggers.FireAll(ctx, cfg)
		s.happened(nil, func(time.Time) {
			o := &s.fleet.once
			o.fires--
			o.unfired += unfired
			o.news = true
		})
	})
}

// Trigger fires triggers of an agent now, those that are named or, without names,
// all of them, and returns when they have fired.
func (s *Scheduler) Trigger(ctx context.Context, name string, triggers ...string) ([]firing.Fired, error) {
	s.mu.Lock()
	m, stopped := s.fleet.find(name), s.ends()
	var cfg *config.Agent
	if m != nil {
		cfg = m.Declared()
	}
	s.mu.Unlock()
	switch {
	case stopped:
		return nil, fmt.Errorf("cannot fire triggers of agent %q: %w", name, errStopping)
	case m == nil:
		return nil, &UnknownAgentError{Agent: name}
	}
	return m.triggers.Fire(ctx, cfg, triggers...)
}

// Webhook returns the webhook trigger of a path, or nil.
func (s *Scheduler) Webhook(path string) *firing.Webhook { return s.firing.Webhook(path) }

// fired is an agent as its triggers know it.
type fired struct {
	s *Scheduler
	m *member
}

var _ firing.Agent = fired{}

// InTurn reports whether the agent's session was in a turn at a time.
func (f fired) InTurn(at time.Time) bool {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.m.InTurn(at)
}

// TriggersFail shows which triggers fail.
func (f fired) TriggersFail(all []firing.Failing) {
	f.s.happened(f.m, func(time.Time) { f.m.failing = all })
}

// RequestsRefused shows which requests were refused.
func (f fired) RequestsRefused() { f.s.happened(f.m, func(time.Time) {}) }

// Down says why the agent cannot work for long, or "".
func (f fired) Down() string {
	f.s.mu.Lock()
	now := status.Agent{AgentState: f.m.describe()}
	f.s.mu.Unlock()
	if o, there := now.Obstacle("heartbeat", f.s.opt.Now()); there && o.Down() {
		return o.Text
	}
	return ""
}

// Append queues a prompt, of a trigger or, with nil, of nobody's. What it has to pass
// by its trigger's until is recorded before.
func (f fired) Append(ctx context.Context, cfg *config.Agent, t *config.Trigger, l inbox.Letter) (begin func(), err error) {
	if err := claim.MakeHome(cfg); err != nil {
		return nil, err
	}
	f.s.mu.Lock()
	moves := f.m.Moves()
	f.s.mu.Unlock()
	ends := func(bool) {}
	if t != nil && t.Until != nil {
		l.Checked = true
		if ends, err = f.s.desk.Demand(cfg, t.Name, l, t.Until); err != nil {
			return nil, err
		}
	}
	id, err := queue.Append(ctx, cfg, l)
	ends(err == nil)
	switch {
	case errors.Is(err, inbox.ErrTooLarge):
		return nil, f.fileTooLarge(ctx, cfg, l, err)
	case errors.Is(err, inbox.ErrDuplicate), errors.Is(err, inbox.ErrFull):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("cannot queue a prompt for agent %q: %w", cfg.Name, err)
	}
	l.ID = id
	f.s.desk.Sent(cfg, l)
	return func() { f.s.queues.appended(f.m, moves) }, nil
}

// fileTooLarge makes a dead letter of a prompt that the inbox refused.
func (f fired) fileTooLarge(ctx context.Context, cfg *config.Agent, l inbox.Letter, why error) error {
	if err := queue.FileTooLarge(ctx, cfg, l); err != nil {
		return err
	}
	f.s.log.Error("a trigger's prompt is a dead letter", "agent", cfg.Name, "source", l.Source, "err", why)
	f.s.happened(f.m, func(time.Time) { f.m.DeadLettered() })
	return why
}

// Holds reports whether an entry whose id begins with prefix is queued or in
// flight. A queue that was empty, and whose inbox has not changed since, is not
// read.
func (f fired) Holds(cfg *config.Agent, prefix string) (bool, error) {
	f.s.mu.Lock()
	idle, empty := f.m.State() == status.Idle && f.m.Def() == cfg, f.m.empty
	f.s.mu.Unlock()
	return queue.Holds(cfg, prefix, idle && empty.Still(cfg.Inbox))
}
