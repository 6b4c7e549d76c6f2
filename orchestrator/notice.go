package orchestrator

import (
	"context"
	"path/filepath"
	"time"
)

// sweepEvery is how often every idle agent's queue is looked at without a
// hint, and blindEvery where the system gives none.
const (
	sweepEvery = 30 * time.Second
	blindEvery = time.Second
)

// watchInboxes notices what others append: soon by the system's
// notifications, at the latest by looking.
func (s *Scheduler) watchInboxes(ctx context.Context) {
	blind := s.opt.Inboxes == nil
	if !blind {
		byPath := map[string]*agent{}
		byFolder := map[string][]*agent{}
		var folders []string
		for _, a := range s.agents {
			folder := filepath.Dir(a.cfg.Inbox)
			if byFolder[folder] == nil {
				folders = append(folders, folder)
			}
			byPath[a.cfg.Inbox] = a
			byFolder[folder] = append(byFolder[folder], a)
		}
		s.wg.Go(func() {
			err := s.opt.Inboxes(ctx, folders, func(path string) {
				if a := byPath[path]; a != nil {
					s.noticed(a)
				}
				for _, a := range byFolder[path] {
					s.noticed(a)
				}
			})
			if err != nil {
				s.log.Warn("queues are looked at every second instead", "err", err)
				s.lookAround(ctx, blindEvery)
			}
		})
	}
	every := sweepEvery
	if blind {
		every = blindEvery
	}
	s.wg.Go(func() { s.lookAround(ctx, every) })
}

// lookAround looks at every agent's queue now and then.
func (s *Scheduler) lookAround(ctx context.Context, every time.Duration) {
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
