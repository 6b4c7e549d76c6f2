package orchestrator

import (
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// stuckLocked takes in how a session ended, once it is decided what follows.
func (s *Scheduler) stuckLocked(a *agent, o session.Outcome, now time.Time) {
	if o.Why != hook.EndAPIFailure || faultOf(o.Detail) != serviceFault || o.Acknowledged > 0 {
		a.stuck = nil
	}
	if o.Why != hook.EndAPIFailure || faultOf(o.Detail) != serviceFault {
		return
	}
	if a.stuck == nil {
		a.stuck = &status.Stuck{Since: now}
		if after := a.cfg.StuckAfter; after > 0 {
			since := a.stuck
			time.AfterFunc(after, func() { s.tellStuck(a, since) })
		}
	}
	a.stuck.Why = describe(o)
}

// unstuckLocked is for an agent that has nothing left to do.
func (s *Scheduler) unstuckLocked(a *agent) {
	if a.stuck != nil {
		a.stuck = nil
		s.publishLocked(a)
	}
}

// tellStuck tells that an agent's work has not moved for stuck-after.
func (s *Scheduler) tellStuck(a *agent, k *status.Stuck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.stuck != k || k.Told || s.stopping || a.removed {
		return
	}
	k.Told = true
	s.note(journal.Event{Agent: a.name, Kind: journal.Stuck, Reason: foreign.Text(k.Why), Started: k.Since})
	s.log.Warn("an agent's work does not move: the service fails", "agent", a.name, "since", k.Since.Local().Format(time.DateTime), "why", k.Why)
	s.publishLocked(a)
}
