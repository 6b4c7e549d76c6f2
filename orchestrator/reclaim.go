package orchestrator

import (
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/queue"
)

// When disk space is given back besides at a session's end.
const (
	// reclaimEvery is for a session that lives on: one that is never idle may
	// live for a year.
	reclaimEvery = 10 * time.Minute
	// reclaimAgain is for what was not finished, such as an inbox that was moved
	// aside and has late writers; see inbox.Held.Reclaim.
	reclaimAgain = 70 * time.Second
)

// reclaim gives the disk space of an agent's acknowledged entries back. Its
// session may live.
func (s *Scheduler) reclaim(a *agent, cfg *config.Agent) {
	again, err := queue.Reclaim(cfg)
	if err != nil {
		s.log.Warn(err.Error(), "agent", a.name)
	}
	if again {
		s.reclaimLater(a)
	}
}

// reclaimLater calls reclaim after a while, once.
func (s *Scheduler) reclaimLater(a *agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.reclaiming || s.stopping || a.removed {
		return
	}
	a.reclaiming = true
	time.AfterFunc(reclaimAgain, func() {
		s.mu.Lock()
		a.reclaiming = false
		cfg, over := a.cfg, s.stopping || a.removed
		s.mu.Unlock()
		if !over {
			s.reclaim(a, cfg)
		}
	})
}
