package orchestrator

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/status"
	"heartbeat/ptyrun"
)

// pausedReason is why a paused agent is held.
func (a *agent) pausedReason() string { return "paused by " + status.WhoPaused(a.pausedBy) }

// UnknownAgentError means that a scheduler runs no agent of that name.
type UnknownAgentError struct{ Agent string }

// Error names the agent.
func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("cannot find agent %q in the running scheduler", e.Agent)
}

// Hint says what to do.
func (e *UnknownAgentError) Hint() string {
	return "`heartbeat status` lists the agents; one that was just declared is run after a reload (kill -HUP)"
}

// errStopping answers who wants something of a run that ends.
var errStopping = errors.New("the scheduler is stopping")

// Pause holds agents, all of them when none is named: nothing new is started
// for them, also after a restart, until Resume. A live session is told to
// finish: its turn ends, what is queued behind it stays queued. It returns
// what the agents are doing now.
func (s *Scheduler) Pause(names ...string) ([]AgentState, error) { return s.PauseBy("", names...) }

// PauseBy is Pause that notes whose session asks for it (see SessionOf); "" is
// a person.
func (s *Scheduler) PauseBy(by string, names ...string) ([]AgentState, error) {
	return s.toEach(names, func(all []*agent) error {
		return s.pauseLocked(all, by, time.Now())
	})
}

// SessionOf returns the agent of whose session a process is, or "": it is
// nobody's who descends from no shim of ours, whatever its environment says.
func (s *Scheduler) SessionOf(pid int) string {
	shims, err := session.Shims(s.opt.StateDir)
	if err != nil {
		s.log.Warn("cannot tell whose process asks", "pid", pid, "err", err)
	}
	for _, above := range ptyrun.Ancestors(pid) {
		if agent, ok := shims[above]; ok {
			return agent
		}
	}
	return ""
}

func (s *Scheduler) pauseLocked(all []*agent, by string, now time.Time) error {
	for _, a := range all {
		if a.paused.IsZero() {
			a.paused, a.pausedBy = now, by
		}
	}
	if err := s.savePausesLocked(); err != nil {
		for _, a := range all {
			if a.paused.Equal(now) {
				a.paused, a.pausedBy = time.Time{}, ""
			}
		}
		return err
	}
	for _, a := range all {
		s.note(journal.Event{Agent: a.name, Kind: journal.Paused, Reason: foreign.Text("by " + status.WhoPaused(by))})
		switch {
		case a.live != nil:
			s.finishLocked(a, a.pausedReason())
		case a.state != Starting && a.state != Held:
			s.followLocked(a, next{state: Held, reason: a.pausedReason()})
		}
		s.publishLocked(a)
	}
	s.slotFreedLocked()
	return nil
}

// Resume ends the pause of agents, all of them when none is named, and
// whatever else keeps them from starting: a hold after too many failures, a
// back-off, a parking, a person who has typed in the session. A session that was
// told to finish does so; work that is left starts another one.
func (s *Scheduler) Resume(names ...string) ([]AgentState, error) {
	return s.toEach(names, func(all []*agent) error {
		before := map[*agent]time.Time{}
		for _, a := range all {
			before[a], a.paused = a.paused, time.Time{} // by whom counts no more with it
		}
		if err := s.savePausesLocked(); err != nil {
			for a, at := range before {
				a.paused = at
			}
			return err
		}
		for _, a := range all {
			s.resumeLocked(a)
		}
		return nil
	})
}

func (s *Scheduler) resumeLocked(a *agent) {
	s.note(journal.Event{Agent: a.name, Kind: journal.Resumed})
	a.loss, a.stuck = nil, nil
	if a.live != nil {
		a.live.Order(session.Order{HandBack: true})
	}
	switch a.state {
	case Parked:
		if c := s.accountLocked(a); c != nil {
			c.Clear()
			s.askLocked(c, true)
		}
		fallthrough
	case Held, BackingOff:
		a.history = history{}
		s.enterLocked(a, Idle, "resumed by a person", time.Time{})
		s.evaluateLocked(a)
	case Idle, Waiting, Starting, Running, Ending:
	}
	s.publishLocked(a)
}

// toEach does something to the agents that are named, or to none of them
// when one is not known.
func (s *Scheduler) toEach(names []string, do func([]*agent) error) ([]AgentState, error) {
	defer s.published.Flush() // `status` shows it when we return
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, errStopping
	}
	all, err := s.namedLocked(names)
	if err != nil {
		return nil, err
	}
	if err := do(all); err != nil {
		return nil, err
	}
	states := make([]AgentState, 0, len(all))
	for _, a := range all {
		states = append(states, s.describeLocked(a))
	}
	return states, nil
}

func (s *Scheduler) namedLocked(names []string) ([]*agent, error) {
	if len(names) == 0 {
		return slices.Clone(s.agents), nil
	}
	var all []*agent
	for _, name := range names {
		a := s.findLocked(name)
		if a == nil {
			return nil, &UnknownAgentError{Agent: name}
		}
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, nil
}

func (s *Scheduler) findLocked(name string) *agent {
	for _, a := range s.agents {
		if a.name == name && !a.removed {
			return a
		}
	}
	return nil
}

// pauses is paused.json in the state directory: since when agents are paused,
// by their keys.
type pauses struct {
	Since map[string]time.Time `json:"since"`
	// By are the agents whose sessions asked for it.
	By map[string]string `json:"by,omitempty"`
}

func pausesPath(stateDir string) string { return filepath.Join(stateDir, "paused.json") }

// PausesError means that it is not known which agents are paused.
type PausesError struct{ Path, Why string }

// Error says why.
func (e *PausesError) Error() string { return "cannot tell which agents are paused: " + e.Why }

// Hint says what to do.
func (e *PausesError) Hint() string {
	return "rm " + e.Path + " runs all of them; `heartbeat pause` then holds those that are to wait"
}

// readPauses returns which agents are paused, by their keys.
func readPauses(stateDir string) (pauses, error) {
	var kept pauses
	path := pausesPath(stateDir)
	if err := state.Load(path, &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pauses{}, &PausesError{path, err.Error()}
	}
	return kept, nil
}

// PausedSince returns since when agents are paused, by their names, whether a
// run holds them now or not. The error is a *PausesError where that cannot be
// told, and so no run can begin.
func PausedSince(stateDir string, agents []*config.Agent) (map[string]time.Time, error) {
	kept, err := readPauses(stateDir)
	if err != nil || len(kept.Since) == 0 {
		return nil, err
	}
	known, err := memory.Read(stateDir)
	if err != nil {
		known = nil // then each agent is who has its name
	}
	paused := map[string]time.Time{}
	for _, who := range known.Follow(agents, time.Now()) {
		if at, ok := kept.Since[who.Key]; ok && who.Gone.IsZero() {
			paused[who.Name] = at
		}
	}
	return paused, nil
}

func (s *Scheduler) loadPauses() error {
	kept, err := readPauses(s.opt.StateDir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agents {
		a.paused, a.pausedBy = kept.Since[a.key], kept.By[a.key]
	}
	return nil
}

// savePausesLocked keeps the pauses of the agents that run here beside those
// of others, which another run may hold.
func (s *Scheduler) savePausesLocked() error {
	kept, err := readPauses(s.opt.StateDir)
	if err != nil {
		return err
	}
	since, by := maps.Clone(kept.Since), maps.Clone(kept.By)
	if since == nil {
		since = map[string]time.Time{}
	}
	if by == nil {
		by = map[string]string{}
	}
	for _, a := range s.agents {
		if a.removed {
			continue
		}
		delete(since, a.key)
		delete(by, a.key)
		if !a.paused.IsZero() {
			since[a.key] = a.paused
			if a.pausedBy != "" {
				by[a.key] = a.pausedBy
			}
		}
	}
	return state.Save(pausesPath(s.opt.StateDir), pauses{Since: since, By: by})
}
