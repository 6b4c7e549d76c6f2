package orchestrator

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/operator"
)

// When disk space is given back besides at a session's end.
const (
	// reclaimEvery is for a session that lives on: one that is never idle may
	// live for a year.
	reclaimEvery = 10 * time.Minute
	// reclaimAgain is for what was not finished, such as an inbox that was moved
	// aside and has late writers; see inbox.Queue.Reclaim.
	reclaimAgain = 70 * time.Second
	// reclaimWait bounds the wait for the hook lock.
	reclaimWait = time.Second
)

// reclaim gives the disk space of an agent's acknowledged entries back. Its
// session may live.
func (s *Scheduler) reclaim(a *agent, cfg *config.Agent) {
	q, err := operator.Open(cfg)
	if err != nil {
		s.log.Warn("cannot give disk space back", "agent", a.name, "err", err)
		return
	}
	defer q.Close()
	if !q.Reclaimable() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), reclaimWait)
	defer cancel()
	unlock, err := q.Lock(ctx)
	if err == nil {
		err = q.Reclaim()
		_ = unlock() // nothing depends on it: the lock ends with its file
	}
	if err != nil {
		s.log.Warn("cannot give disk space back", "agent", a.name, "err", err)
	}
	if q.Reclaimable() {
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
