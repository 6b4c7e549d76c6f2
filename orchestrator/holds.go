package orchestrator

import (
	"time"

	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/memory"
)

// holds brings what is saved of an agent's hold in line with what it is, so that
// the next run does not spend its restarts again. It returns what writes it down,
// or nil.
func (s *Scheduler) holds(m *member, now time.Time) (effect func()) {
	h := m.Hold()
	if h.Why == m.hold.Why && h.Answers == m.hold.Answers || m.Expected() {
		return nil
	}
	m.hold = memory.Hold{}
	if h.Why != "" {
		m.hold = memory.Hold{Since: now, Why: h.Why, Fix: h.Fix, Answers: h.Answers, Definition: memory.DefinitionOf(m.Def())}
	}
	return func() { s.keepHold(m) }
}

// keepHold writes down whether a member is held. Of two at the same time, the last
// one writes what is true then.
func (s *Scheduler) keepHold(m *member) {
	s.holding.Lock()
	defer s.holding.Unlock()
	s.mu.Lock()
	key, hold := m.key, m.hold
	s.mu.Unlock()
	if err := memory.KeepHold(s.opt.StateDir, key, hold); err != nil {
		s.log.Warn(err.Error(), "agent", m.Name)
	}
}

// goOnHeld holds the members that an earlier run held, if they are declared as they
// were then.
func (s *Scheduler) goOnHeld() {
	holds, err := memory.ReadHolds(s.opt.StateDir)
	if err != nil {
		s.log.Warn("cannot tell which agents were held; they are tried again", "err", err)
	}
	for _, m := range s.fleet.members {
		h, held := holds[m.key]
		if !held {
			continue
		}
		s.happened(m, func(now time.Time) {
			if m.hold = h; h.Definition == memory.DefinitionOf(m.Def()) {
				m.WasHeld(agent.Hold{Why: h.Why, Fix: h.Fix, Answers: h.Answers}, h.Since, now)
			}
		})
	}
}
