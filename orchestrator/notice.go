package orchestrator

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
)

// sweepEvery is how often every idle agent's queue is looked at without a
// hint, and blindEvery where the system gives none.
const (
	sweepEvery = 30 * time.Second
	blindEvery = time.Second
	// wholeRounds is how many such rounds it takes to look into every queue,
	// whatever its inbox looks like from outside.
	wholeRounds = 20
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
				s.hinted(a)
			}
			for _, a := range byFolder[path] {
				s.inspect(a)
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

// noticed is called when something may have been appended to an inbox. The
// queue is looked into without the lock, so that no disk holds up the fleet.
func (s *Scheduler) noticed(a *agent) {
	for {
		s.mu.Lock()
		wants, cfg, moves := s.wantsWorkLocked(a), a.cfg, a.moves
		s.mu.Unlock()
		if !wants {
			return
		}
		l := queue.LookInto(cfg)
		s.mu.Lock()
		same := a.moves == moves && a.cfg == cfg && s.wantsWorkLocked(a)
		if same {
			s.foundLocked(a, l)
		}
		s.mu.Unlock()
		if same {
			return
		}
	}
}

// movesOf is how often an agent's state has changed.
func (s *Scheduler) movesOf(a *agent) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.moves
}

// queued is noticed for an entry that we have appended ourselves. Where the
// agent's state has not changed since before, nobody has taken the entry, and
// the queue need not be looked into.
func (s *Scheduler) queued(a *agent, moves int) {
	s.mu.Lock()
	same := a.moves == moves
	if same && a.state == Idle && s.wantsWorkLocked(a) {
		s.foundLocked(a, queue.Look{Depth: inbox.Depth{Entries: 1}})
	}
	s.mu.Unlock()
	if !same {
		s.hinted(a)
	}
}

// hinted is noticed for what may mean nothing: the queue of an agent that has
// work already is not looked into, nor one that was empty and whose inbox has
// not changed since.
func (s *Scheduler) hinted(a *agent) {
	s.mu.Lock()
	idle, path, empty := a.state == Idle, a.cfg.Inbox, a.empty
	s.mu.Unlock()
	switch {
	case !idle:
		s.countLater(a)
	case !empty.Still(path):
		s.noticed(a)
	}
}

// lookAtAll looks at the queues of the agents that may have work. Of those
// that were empty, and whose inbox has not changed since, only the chosen ones
// are looked into.
func (s *Scheduler) lookAtAll(chosen func(i int) bool) {
	s.mu.Lock()
	agents := slices.Clone(s.agents)
	s.mu.Unlock()
	for i, a := range agents {
		if s.inspect(a); chosen(i) {
			s.noticed(a)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slotFreedLocked()
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
			s.round++
			s.lookAtAll(func(i int) bool { return (i+s.round)%wholeRounds == 0 })
		}
	}
}
