package orchestrator

import (
	"slices"
	"time"
)

// Foresee checks for each agent with which nothing is being done what would prevent
// its sessions from working, before its first prompt arrives, perhaps at night. It
// returns when all are checked.
func (s *Scheduler) Foresee() {
	s.mu.Lock()
	all := slices.Clone(s.fleet.members)
	s.mu.Unlock()
	s.foresee(all)
}

func (s *Scheduler) foresee(all []*member) {
	if s.opt.Blocked == nil {
		return
	}
	for _, m := range all {
		select {
		case s.asking <- struct{}{}:
		case <-s.work.Done():
			return
		}
		s.mu.Lock()
		def, wants := m.Def(), m.Wants(time.Now())
		s.mu.Unlock()
		if wants {
			f := s.failure(def, s.opt.Blocked(def))
			s.happened(m, func(now time.Time) {
				if f != nil && m.Def() == def {
					m.Foresees(*f, now)
				}
			})
		}
		<-s.asking
	}
}
