package orchestrator

import (
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/status"
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
	return s.toEach("pause", names, func(m *member, kept *memory.Pauses, now time.Time) {
		kept.Set(m.key, m.Paused().Again(pauseFrom(now, length, by)))
	}, func(m *member, now time.Time) { m.Pause(pauseFrom(now, length, by)) })
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
	return s.toEach("resume", names, func(*member, *memory.Pauses, time.Time) {}, func(m *member, now time.Time) {
		m.wakeCheck()
		if m.Resume(now) {
			s.fleet.askAgain(s.fleet.accounts.Clear(m.Name))
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

// CheckPerson returns nil if a process is a person's: it belongs to no session and no
// check of this fleet or of another one of this user. Only such a one may do what a
// person may.
func (s *Scheduler) CheckPerson(pid int) error { return CheckPerson(pid, s.opt.StateDir) }

// CheckPerson is Scheduler.CheckPerson for the fleet with a state directory, or for
// callers that do not know which; "". What a check runs the agent has written.
func CheckPerson(pid int, stateDir string) error {
	others := state.All()
	if stateDir != "" {
		others = state.Beside(stateDir)
	}
	if err := session.CheckPerson(pid, stateDir, others...); err != nil {
		return err
	}
	for _, dir := range append(others, stateDir) {
		if dir == "" {
			continue
		}
		if agent := proof.AgentOf(dir, pid); agent != "" {
			return &session.NotPersonError{Agent: agent, What: "check"}
		}
	}
	return nil
}

// toEach does something, in a word, to the agents that are named, or to none of them if one
// is not known, or their pauses cannot be saved.
func (s *Scheduler) toEach(verb string, names []string, keep func(*member, *memory.Pauses, time.Time), do func(*member, time.Time)) ([]status.AgentState, error) {
	defer s.published.Flush() // `status` shows it when we return
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	all, err := s.fleet.named(names)
	if s.ends() {
		err = notTo(verb, names)
	}
	now, kept := time.Now(), memory.Pauses{}
	var keys []string
	for _, m := range all {
		keys = append(keys, m.key)
		keep(m, &kept, now)
	}
	s.mu.Unlock()
	if err == nil {
		err = memory.KeepPauses(s.opt.StateDir, keys, kept)
	}
	if err != nil {
		return nil, err
	}
	s.happened(nil, func(time.Time) {
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

// PauseStopped is Pause for a fleet that no scheduler runs: the next one begins
// with the agents paused. If a run has one of them, the error matches
// memory.ErrRuns, and nothing has changed.
func PauseStopped(f *config.Fleet, stateDir string, length time.Duration, names ...string) ([]status.AgentState, error) {
	agents, asked := chosen(f, names), pauseFrom(time.Now(), length, "")
	if err := memory.PauseWithoutRun(stateDir, f.Agents, agents, asked); err != nil {
		return nil, err
	}
	e := journal.Event{At: asked.Since, Kind: journal.Paused, Reason: "by a person, for the next run", Until: asked.Until}
	return noteStopped(stateDir, agents, e, func(a *config.Agent) (status.AgentState, error) {
		return status.AgentState{Agent: a.Name, State: status.Stopped, Paused: asked.Since, PausedUntil: asked.Until}, nil
	})
}

// ResumeStopped is Resume for a fleet that no scheduler runs: what an earlier run
// left does not prevent the next one from starting the agents, except what their states
// say (status.AgentState.Stays). Its errors are those of PauseStopped.
func ResumeStopped(f *config.Fleet, stateDir string, names ...string) ([]status.AgentState, error) {
	agents, now := chosen(f, names), time.Now()
	if err := memory.ResumeWithoutRun(stateDir, f.Agents, agents, now); err != nil {
		return nil, err
	}
	states, err := noteStopped(stateDir, agents, journal.Event{At: now, Kind: journal.Resumed}, func(a *config.Agent) (status.AgentState, error) {
		return status.Resumed(stateDir, a.Name, now)
	})
	those := *f
	those.Agents = agents
	status.Keeps(states, status.Read(&those, stateDir, nil, now).Agents)
	return states, err
}

// noteStopped tells readers what was done with agents that no scheduler runs.
func noteStopped(
	stateDir string, agents []*config.Agent, e journal.Event, tell func(*config.Agent) (status.AgentState, error),
) ([]status.AgentState, error) {
	j, err := journal.Open(stateDir)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	var states []status.AgentState
	for _, a := range agents {
		st, err := tell(a)
		if e.Agent = a.Name; err == nil {
			err = j.Add(e)
		}
		if err != nil {
			return nil, err
		}
		states = append(states, st)
	}
	return states, nil
}
