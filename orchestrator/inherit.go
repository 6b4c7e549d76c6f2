package orchestrator

import (
	"errors"
	"io/fs"

	"heartbeat/orchestrator/status"
)

// inherit takes over what an earlier run left for `status`: how each agent's
// last session ended. What the agents did then is no longer so.
func (s *Scheduler) inherit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agents {
		kept, err := status.Published(s.opt.StateDir, a.cfg.Name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.log.Warn("cannot read how the last session ended", "agent", a.cfg.Name, "err", err)
		}
		a.outcome, a.session, a.loss = kept.Last, kept.Session, kept.QueueLost
		s.publishLocked(a)
	}
}
