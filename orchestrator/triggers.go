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
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/queue"
)

// identify says who the agents of the fleet are, by what an earlier run knows.
func (s *Scheduler) identify() error {
	known, err := memory.Note(s.opt.StateDir, s.fleet.Agents, s.chosen(s.fleet), time.Now())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	declared := known.Declared()
	for _, a := range s.agents {
		s.is(a, declared[a.name])
	}
	return nil
}

// is says who an agent is, before its triggers are set.
func (s *Scheduler) is(a *agent, who memory.Identity) {
	a.key = who.Key
	a.triggers = s.firing.Of(a.name, who, fired{s, a})
}

// startTriggers starts what fires: for a run with Once nothing, or, with
// Fire, everything one time.
func (s *Scheduler) startTriggers(ctx context.Context) {
	if !s.opt.Once {
		s.firing.Start(ctx)
	}
	for _, a := range s.agents {
		switch {
		case !s.opt.Once:
			a.triggers.Set(ctx, a.cfg)
		case s.opt.Fire:
			s.fireAll(ctx, a, a.cfg)
		}
	}
}

// fireAll fires an agent's triggers one time.
func (s *Scheduler) fireAll(ctx context.Context, a *agent, cfg *config.Agent) {
	s.mu.Lock()
	s.fires++
	s.mu.Unlock()
	s.wg.Go(func() {
		unfired := a.triggers.FireAll(ctx, cfg)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fires--
		s.unfired += unfired
		s.finishOnceLocked()
	})
}

// Trigger fires triggers of an agent now, the named ones or, without names,
// all of them, and returns when they have fired.
func (s *Scheduler) Trigger(ctx context.Context, name string, triggers ...string) ([]firing.Fired, error) {
	s.mu.Lock()
	a := s.findLocked(name)
	if s.stopping || a == nil {
		defer s.mu.Unlock()
		if s.stopping {
			return nil, errStopping
		}
		return nil, &UnknownAgentError{Agent: name}
	}
	cfg := a.declaredLocked()
	s.mu.Unlock()
	return a.triggers.Fire(ctx, cfg, triggers...)
}

// declaredLocked is the definition that the triggers follow: they do not wait
// for the next session.
func (a *agent) declaredLocked() *config.Agent {
	if a.next != nil {
		return a.next
	}
	return a.cfg
}

// fired is an agent as its triggers know it.
type fired struct {
	s *Scheduler
	a *agent
}

var _ firing.Agent = fired{}

// InTurn reports whether the agent's session was in a turn at a time.
func (f fired) InTurn(at time.Time) bool {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.a.inTurnLocked(at)
}

// TriggersFail shows which triggers fail.
func (f fired) TriggersFail(all []firing.Failing) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.a.failing = all
	if f.s.findLocked(f.a.name) == f.a {
		f.s.publishLocked(f.a)
	}
}

// Append queues a prompt.
func (f fired) Append(ctx context.Context, cfg *config.Agent, l inbox.Letter) (begin func(), err error) {
	if err := claim.MakeHome(cfg); err != nil {
		return nil, err
	}
	moves := f.s.movesOf(f.a)
	_, err = queue.Append(ctx, cfg, l)
	switch {
	case errors.Is(err, inbox.ErrTooLarge):
		return nil, f.fileTooLarge(ctx, cfg, l, err)
	case errors.Is(err, inbox.ErrDuplicate):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("cannot queue a prompt for agent %q: %w", cfg.Name, err)
	}
	return func() { f.s.queued(f.a, moves) }, nil
}

// fileTooLarge makes a dead letter of a prompt that the inbox refused.
func (f fired) fileTooLarge(ctx context.Context, cfg *config.Agent, l inbox.Letter, why error) error {
	if err := queue.FileTooLarge(ctx, cfg, l); err != nil {
		return err
	}
	f.s.log.Error("a trigger's prompt is a dead letter", "agent", cfg.Name, "source", l.Source, "err", why)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.a.deadLettered++
	return why
}

// Holds reports whether an entry whose id begins with prefix is queued or in
// flight. A queue that was empty, and whose inbox has not changed since, is not
// read.
func (f fired) Holds(cfg *config.Agent, prefix string) (bool, error) {
	f.s.mu.Lock()
	idle, empty := f.a.state == Idle && f.a.cfg == cfg, f.a.empty
	f.s.mu.Unlock()
	return queue.Holds(cfg, prefix, idle && empty.Still(cfg.Inbox))
}
