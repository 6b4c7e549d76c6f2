package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/person"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// Pause holds agents, all of them if none is named: nothing new is started for
// them, even after a restart, until Resume. A live session is told to finish: its
// turn ends, and what is queued behind it stays queued. It returns what the agents
// are doing now.
func (s *Scheduler) Pause(names ...string) ([]status.AgentState, error) {
	return s.PauseBy("", 0, names...)
}

// PauseBy is Pause that records whose session asks for it (see SessionOf); "" is a
// person. After a length, if it is not 0, the pause ends by itself.
func (s *Scheduler) PauseBy(by string, length time.Duration, names ...string) ([]status.AgentState, error) {
	asked := pauseFrom(s.opt.Now(), length, by)
	return s.toEach("pause", names, func(c *store.Change, key string) error { return memory.Pause(c, key, asked) }, func(m *member, _ time.Time) { m.Pause(asked) })
}

// pauseFrom returns a pause that begins now, of a length or, with 0, without an end.
func pauseFrom(now time.Time, length time.Duration, by string) memory.Paused {
	p := memory.Paused{Since: now, By: by}
	if length > 0 {
		p.Until = now.Add(length)
	}
	return p
}

// Resume ends the pause of agents, all of them if none is named, and everything
// else that prevents them from starting: a hold after too many failures, a
// back-off, a parking, a person who has typed in the session. A session that was
// told to finish does so; remaining work starts another one.
func (s *Scheduler) Resume(names ...string) ([]status.AgentState, error) {
	var these []string
	s.mu.Lock()
	all, _ := s.fleet.named(names) // toEach says what is wrong with them
	for _, m := range all {
		these = append(these, m.Name)
	}
	s.mu.Unlock()
	if err := attempts.Forget(s.opt.StateDir, these...); err != nil {
		return nil, err
	}
	return s.toEach("resume", names, memory.Resume, func(m *member, now time.Time) {
		m.wakeCheck()
		left := m.Describe().LeavesRoom
		if m.Resume(now) {
			s.fleet.askAgain(s.fleet.accounts.Clear(m.Name))
		}
		if left { // whoever resumes it learns at once that it stays parked
			if p := s.fleet.above(m, now); p != nil {
				m.Parks(*p, now)
			}
		}
	})
}

// SessionOf returns the agent whose session a process belongs to, or "": a process
// that does not descend from one of our shims belongs to none, whatever its
// environment says.
func (s *Scheduler) SessionOf(pid int) string {
	agent, err := session.AgentOf(s.opt.StateDir, pid)
	if err != nil {
		s.log.Warn("cannot tell whose process asks", "pid", pid, "err", err)
	}
	return agent
}

// CheckPerson returns nil if a process is a person's: only such a one may do what a
// person may.
func (s *Scheduler) CheckPerson(pid int) error { return person.Check(pid, s.opt.StateDir) }

// toEach does something, in a word, to the agents that are named, or to none of them if one
// is not known, or it cannot be kept, by the agents' keys.
func (s *Scheduler) toEach(verb string, names []string, keep func(c *store.Change, key string) error, do func(*member, time.Time)) ([]status.AgentState, error) {
	defer s.tell()
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	all, err := s.fleet.named(names)
	if s.ends() {
		err = notTo(verb, names)
	}
	var keys []string
	for _, m := range all {
		keys = append(keys, m.key)
	}
	s.mu.Unlock()
	if err == nil {
		err = s.opt.Store.Write(context.Background(), func(c *store.Change) error { return forEach(c, keys, keep) })
	}
	if err != nil {
		return nil, err
	}
	s.happened(nil, func(now time.Time) {
		for _, m := range all {
			do(m, now)
			s.fleet.touch(m)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]status.AgentState, 0, len(all))
	for _, m := range all {
		states = append(states, m.describe())
	}
	return states, nil
}

// forEach has something kept for each of some agents, by their keys.
func forEach(c *store.Change, keys []string, keep func(c *store.Change, key string) error) error {
	for _, key := range keys {
		if err := keep(c, key); err != nil {
			return err
		}
	}
	return nil
}

// PauseStopped is Pause for a fleet that no scheduler runs: the next one begins
// with the agents paused. If a run has one of them, the error matches
// memory.ErrRuns, and nothing has changed.
func PauseStopped(f *config.Fleet, stateDir string, length time.Duration, names ...string) ([]status.AgentState, error) {
	agents, asked := chosen(f, names), pauseFrom(time.Now(), length, "")
	e := journal.Event{At: asked.Since, Kind: journal.Paused, Reason: "by a person, for the next run", Until: asked.Until}
	if err := stopped(f, stateDir, agents, e, func(c *store.Change, key string) error { return memory.Pause(c, key, asked) }); err != nil {
		return nil, err
	}
	var states []status.AgentState
	for _, a := range agents {
		states = append(states, status.AgentState{Agent: a.Name, State: status.Stopped, Paused: asked.Since, PausedUntil: asked.Until})
	}
	return states, nil
}

// ResumeStopped is Resume for a fleet that no scheduler runs: what an earlier run
// left does not prevent the next one from starting the agents, except what their states
// say (status.AgentState.Stays). Its errors are those of PauseStopped.
func ResumeStopped(f *config.Fleet, stateDir string, names ...string) ([]status.AgentState, error) {
	agents, now := chosen(f, names), time.Now()
	if err := stopped(f, stateDir, agents, journal.Event{At: now, Kind: journal.Resumed}, memory.Resume); err != nil {
		return nil, err
	}
	var these []string
	var states []status.AgentState
	for _, a := range agents {
		these = append(these, a.Name)
		st, err := status.Resumed(stateDir, a.Name, now)
		if err != nil {
			return nil, err
		}
		states = append(states, st)
	}
	if err := attempts.Forget(stateDir, these...); err != nil {
		return nil, err
	}
	those := *f
	those.Agents = agents
	status.Keeps(states, status.Read(&those, stateDir, nil, now).Agents)
	return states, nil
}

// stopped has something kept of agents, by their keys, of a fleet that no scheduler runs, and
// written in the journal. If a run has one of them, the error matches memory.ErrRuns, and
// nothing has changed.
func stopped(f *config.Fleet, stateDir string, agents []*config.Agent, e journal.Event, keep func(c *store.Change, key string) error) error {
	if err := memory.NotRun(agents); err != nil {
		return err
	}
	err := adopt.Act(context.Background(), stateDir, func(c *store.Change) error {
		known, err := memory.Note(c, stateDir, f.Agents, nil, e.At)
		if err != nil {
			return err
		}
		who := known.Declared()
		var keys []string
		var events []journal.Event
		for _, a := range agents {
			e.Agent = a.Name
			keys, events = append(keys, who[a.Name].Key), append(events, e)
		}
		if err := forEach(c, keys, keep); err != nil {
			return err
		}
		return journal.Write(c, events...)
	})
	if held, runs := errors.AsType[*store.HeldError](err); runs {
		return fmt.Errorf("%w: %w", memory.ErrRuns, held)
	}
	return err
}

// PauseTrigger keeps a trigger of an agent from firing by itself, even after a restart, until
// ResumeTrigger; by and length are those of PauseBy. The agent works on.
func (s *Scheduler) PauseTrigger(by string, length time.Duration, name, trigger string) ([]status.AgentState, error) {
	asked := pauseFrom(s.opt.Now(), length, by)
	e := journal.Event{Kind: journal.Paused, Reason: foreign.Text("by " + status.WhoPaused(by)), Until: asked.Until}
	return s.toTrigger("pause", name, trigger, e, func(t *firing.Triggers, cfg *config.Agent) error {
		return t.Pause(s.work, cfg, trigger, asked)
	})
}

// ResumeTrigger ends the pause of a trigger.
func (s *Scheduler) ResumeTrigger(name, trigger string) ([]status.AgentState, error) {
	return s.toTrigger("resume", name, trigger, journal.Event{Kind: journal.Resumed}, func(t *firing.Triggers, cfg *config.Agent) error {
		return t.Resume(s.work, cfg, trigger)
	})
}

// toTrigger does something, in a word, to a trigger of an agent, and tells of it.
func (s *Scheduler) toTrigger(verb, name, trigger string, e journal.Event, do func(*firing.Triggers, *config.Agent) error) ([]status.AgentState, error) {
	defer s.tell()
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	m, ends := s.fleet.find(name), s.ends()
	s.mu.Unlock()
	switch {
	case ends:
		return nil, notTo(verb, []string{name})
	case m == nil:
		return nil, &UnknownAgentError{Agent: name}
	}
	if err := do(m.triggers, m.Declared()); err != nil {
		return nil, err
	}
	e.Agent, e.Trigger = name, trigger
	s.records.note(e)
	s.happened(m, func(time.Time) {})
	s.mu.Lock()
	defer s.mu.Unlock()
	return []status.AgentState{m.describe()}, nil
}

// PauseTriggerStopped is PauseTrigger for a fleet that no scheduler runs. Its errors are
// those of PauseStopped.
func PauseTriggerStopped(f *config.Fleet, stateDir string, length time.Duration, name, trigger string) ([]status.AgentState, error) {
	asked := pauseFrom(time.Now(), length, "")
	e := journal.Event{At: asked.Since, Kind: journal.Paused, Reason: "by a person, for the next run", Until: asked.Until}
	return toTriggerStopped(f, stateDir, name, trigger, e, func(t *memory.Trigger) { t.Pause(asked) })
}

// ResumeTriggerStopped is ResumeTrigger for a fleet that no scheduler runs. Its errors are
// those of PauseStopped.
func ResumeTriggerStopped(f *config.Fleet, stateDir, name, trigger string) ([]status.AgentState, error) {
	now := time.Now()
	return toTriggerStopped(f, stateDir, name, trigger, journal.Event{At: now, Kind: journal.Resumed}, func(t *memory.Trigger) { t.Resume(now) })
}

func toTriggerStopped(f *config.Fleet, stateDir, name, trigger string, e journal.Event, do func(*memory.Trigger)) ([]status.AgentState, error) {
	agents := chosen(f, []string{name})
	i, err := firing.Find(agents[0], trigger)
	if err != nil {
		return nil, err
	}
	e.Trigger = trigger
	err = stopped(f, stateDir, agents, e, func(c *store.Change, key string) error {
		return memory.ChangeTrigger(c, key, agents[0], i, do)
	})
	if err != nil {
		return nil, err
	}
	return []status.AgentState{{Agent: name, State: status.Stopped, PausedTriggers: memory.PausedTriggersOf(stateDir, agents)[name]}}, nil
}
