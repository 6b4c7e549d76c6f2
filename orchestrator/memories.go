package orchestrator

import (
	"errors"
	"os"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/state"
)

// BeginAnew returns the triggers that will begin anew once a fleet's file is run.
// What cannot be read the run itself tells of.
func BeginAnew(f *config.Fleet) []memory.Anew {
	dir, err := state.Path(f.Name)
	if err != nil || CheckName(f) != nil {
		return nil
	}
	anew, err := memory.Preview(dir, f.Agents, time.Now())
	if err != nil {
		return nil
	}
	return anew
}

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
		a.is(declared[a.name])
	}
	return nil
}

// is says who an agent is.
func (a *agent) is(who memory.Identity) { a.key, a.comes = who.Key, who.Comes() }

// recollection is what an agent's triggers remember, in their order.
type recollection struct {
	memory *memory.Agent
	all    []*memory.Trigger
	anew   []memory.Anew
}

// remember binds what is remembered to an agent's triggers as cfg declares them.
// What begins anew is told. The caller holds s.changing.
func (s *Scheduler) remember(a *agent, cfg *config.Agent) (r recollection, err error) {
	if r.memory, err = s.memoryOf(a); err != nil {
		return r, err
	}
	var changed bool
	r.all, r.anew, changed = r.memory.Follow(cfg, a.comes, time.Now())
	for _, n := range r.anew {
		s.note(journal.Event{Agent: a.name, Kind: journal.TriggerAnew, Trigger: n.Trigger, Reason: n.Why, Detail: "it fires for " + n.Fires})
		s.log.Warn("a trigger begins anew", "agent", a.name, "trigger", n.Trigger, "why", n.Why, "fires-for", n.Fires)
	}
	s.mu.Lock()
	a.comes, a.keys = false, map[string]string{}
	for i, t := range r.all {
		a.keys[cfg.Triggers[i].Name] = a.key + "/" + t.Key()
	}
	s.mu.Unlock()
	if changed {
		s.saveSoon(a.name, r.memory)
	}
	return r, nil
}

// memoryOf returns what an agent's triggers remember. When it cannot be read
// they must not run: they would fire again what they have fired. A memory that
// is damaged is put aside, as no trying again brings it back; what was fired
// last, the inboxes remember as well. The caller holds s.changing.
func (s *Scheduler) memoryOf(a *agent) (*memory.Agent, error) {
	if m := s.memories[a.key]; m != nil {
		return m, nil
	}
	m, err := memory.Open(s.opt.StateDir, a.key)
	if errors.Is(err, state.ErrDamaged) {
		s.note(journal.Event{Agent: a.name, Kind: journal.TriggerFailed, Reason: "its triggers begin anew: " + err.Error()})
		s.log.Error("the agent's triggers begin anew", "agent", a.name, "err", err)
		err = os.Rename(m.Path(), m.Path()+".damaged")
	}
	if err != nil {
		return nil, err
	}
	s.memories[a.key] = m
	return m, nil
}

// keyLocked names a trigger of an agent for good.
func (a *agent) keyLocked(trigger string) string {
	if key := a.keys[trigger]; key != "" {
		return key
	}
	return a.name + "/" + trigger // nothing of it was remembered
}

// saveSoon has what an agent's triggers remember written.
func (s *Scheduler) saveSoon(agent string, m *memory.Agent) {
	s.records.put(m.Path(), func() {
		if err := m.Save(); err != nil {
			s.log.Warn("cannot keep what triggers remember", "agent", agent, "err", err)
		}
	})
}
