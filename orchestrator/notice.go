package orchestrator

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// sweepEvery is how often every idle agent's queue is looked at without a
// hint, and blindEvery where the system gives none.
const (
	sweepEvery = 30 * time.Second
	blindEvery = time.Second
)

// watchInboxes notices by the system's notifications what others append, for
// the agents that there are now. The caller holds s.changing.
func (s *Scheduler) watchInboxes(ctx context.Context) {
	if s.opt.Inboxes == nil {
		return
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	ctx, s.unwatch = context.WithCancel(ctx)
	byPath, byFolder := s.inboxes()
	s.wg.Go(func() {
		err := s.opt.Inboxes(ctx, slices.Sorted(maps.Keys(byFolder)), func(path string) {
			if a := byPath[path]; a != nil {
				s.noticed(a)
			}
			for _, a := range byFolder[path] {
				s.noticed(a)
			}
		})
		if err != nil {
			s.log.Warn("queues are looked at every second instead", "err", err)
			s.look(ctx, blindEvery)
		}
	})
}

// inboxes returns the agents by their inboxes and by the folders of those.
func (s *Scheduler) inboxes() (byPath map[string]*agent, byFolder map[string][]*agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byPath, byFolder = map[string]*agent{}, map[string][]*agent{}
	for _, a := range s.agents {
		if a.removed {
			continue
		}
		folder := filepath.Dir(a.cfg.Inbox)
		byPath[a.cfg.Inbox] = a
		byFolder[folder] = append(byFolder[folder], a)
	}
	return byPath, byFolder
}

// lookAround notices, at the latest, what nothing was reported of.
func (s *Scheduler) lookAround(ctx context.Context) {
	every := sweepEvery
	if s.opt.Inboxes == nil {
		every = blindEvery
	}
	s.look(ctx, every)
}

// look looks at every agent's queue now and then.
func (s *Scheduler) look(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.evaluateAll()
		}
	}
}
