package orchestrator

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// noStamp belongs to an inbox about which nothing is known.
var noStamp queue.Stamp

// hasWork reports whether a session has something to do: an entry, or one that
// continues or is not proven.
func hasWork(d inbox.Depth) bool {
	return d.Entries > 0 || agent.Passing(d.Failure) || d.Unproven || d.Returning > 0
}

// look looks into the queue of a member that wants work, without the lock, so that
// no disk delays the fleet.
func (s *Scheduler) look(m *member) {
	for {
		s.mu.Lock()
		wants, cfg, moves := s.fleet.wants(m, time.Now()), m.Def(), m.Moves()
		s.mu.Unlock()
		if !wants {
			return
		}
		l := queue.LookInto(cfg)
		same := false
		s.happened(m, func(now time.Time) {
			if same = m.Moves() == moves && m.Def() == cfg && s.fleet.wants(m, now); same {
				s.found(m, l, now)
			}
		})
		if same {
			return
		}
	}
}

// found takes what is queued for a member that wants work.
func (s *Scheduler) found(m *member, l queue.Look, now time.Time) {
	s.fleet.once.news = true
	m.empty = noStamp
	m.Counted(l.Depth.Entries, l.Depth.Names)
	switch {
	case m.Owes():
		m.Recover("what was in flight was dealt with")
	case l.Err != nil:
		m.Fails(*s.failure(m.Def(), l.Err), now, agent.Roll())
	case l.Depth.Checking: // nobody has said so
		m.ToCheck()
	case !hasWork(l.Depth):
		if !l.Depth.Tail {
			m.empty = l.Stamp
		}
		m.Nothing(l.Depth.Tail, now)
		s.fleet.declines(m, now)
	case s.fleet.may(m, now):
		line := s.fleet.line.obstacle(m, now)
		if m.Begin(line, now); line == "" {
			s.fleet.line.lastStart = now
		}
	}
}

// hinted looks into the queue of a member after a hint that may mean nothing: not
// if it has work already, nor if it was empty and its inbox has not changed since.
func (s *Scheduler) hinted(m *member) {
	s.mu.Lock()
	idle, path, empty := m.State() == status.Idle, m.Def().Inbox, m.empty
	s.mu.Unlock()
	switch {
	case !idle:
		s.happened(m, m.CountLater)
	case !empty.Still(path):
		s.look(m)
	}
}

// appended is for an entry that we appended ourselves. If the member's state has
// not changed since before, nobody has taken the entry, and the queue need not be
// looked into.
func (s *Scheduler) appended(m *member, moves int) {
	same := false
	s.happened(m, func(now time.Time) {
		m.Fired()
		same = m.Moves() == moves
		if same && m.State() == status.Idle && s.fleet.wants(m, now) {
			s.found(m, queue.Look{Depth: inbox.Depth{Entries: 1}}, now)
		}
	})
	if !same {
		s.hinted(m)
	}
}

// completeTail lets a quiet writer's last line count, and looks at it.
func (s *Scheduler) completeTail(m *member, cfg *config.Agent) {
	if err := queue.CompleteTail(cfg); err != nil {
		s.log.Warn("cannot read the queue", "agent", m.Name, "err", err)
	}
	s.look(m)
}

// count counts what is queued for a member that does not start.
func (s *Scheduler) count(m *member, cfg *config.Agent) {
	l := queue.LookInto(cfg)
	s.happened(m, func(now time.Time) {
		if l.Err == nil && l.Depth.Entries > 0 && m.Def() == cfg && m.Recounted(l.Depth.Entries, l.Depth.Names, now) {
			s.fleet.accounts.Hurry(m.Name, agent.HurryAfter)
		}
	})
}

// reclaim frees the disk space of a member's acknowledged entries. Its session may
// live.
func (s *Scheduler) reclaim(m *member, cfg *config.Agent) {
	again, err := queue.Reclaim(cfg)
	if err != nil {
		s.log.Warn(err.Error(), "agent", m.Name)
	}
	if again {
		s.happened(m, m.ReclaimLater)
	}
}

// sweepEvery is how often every idle agent's queue is checked without a hint, and
// blindEvery if the system gives none.
const (
	sweepEvery = 30 * time.Second
	blindEvery = time.Second
	// wholeRounds is how many of these rounds it takes to look into every queue,
	// whatever its inbox looks like from outside.
	wholeRounds = 20
)

// lookout notices what others put into queues.
type lookout struct {
	s       *Scheduler
	unwatch context.CancelFunc // ends the watch of the inboxes
	round   int                // of checking all queues
}

// watch learns from the system's notifications what others append, for the present
// agents. The caller holds Scheduler.changing.
func (o *lookout) watch() {
	s := o.s
	if s.opt.Inboxes == nil {
		return
	}
	if o.unwatch != nil {
		o.unwatch()
	}
	var ctx context.Context
	ctx, o.unwatch = context.WithCancel(s.work)
	byPath, byFolder := o.inboxes()
	s.wg.Go(func() {
		err := s.opt.Inboxes(ctx, slices.Sorted(maps.Keys(byFolder)), func(path string) {
			if m := byPath[path]; m != nil {
				s.hinted(m)
			}
			for _, m := range byFolder[path] {
				s.inspect(m)
			}
		})
		if err != nil {
			s.log.Warn("queues are checked every second instead", "err", err)
			o.look(ctx, blindEvery)
		}
	})
}

// watchAnew watches the inboxes where they are now.
func (o *lookout) watchAnew() {
	s := o.s
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	works := s.fleet.works()
	s.mu.Unlock()
	if works {
		o.watch()
	}
}

// inboxes returns the members by inbox, and by the folders of their inboxes.
func (o *lookout) inboxes() (byPath map[string]*member, byFolder map[string][]*member) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	byPath, byFolder = map[string]*member{}, map[string][]*member{}
	for _, m := range s.fleet.members {
		if m.Removed() {
			continue
		}
		folder := filepath.Dir(m.Def().Inbox)
		byPath[m.Def().Inbox], byPath[inbox.Urgent(m.Def().Inbox)] = m, m
		byFolder[folder] = append(byFolder[folder], m)
	}
	return byPath, byFolder
}

// around regularly checks for work whose notification was lost.
func (o *lookout) around(ctx context.Context) {
	every := sweepEvery
	if o.s.opt.Inboxes == nil {
		every = blindEvery
	}
	o.look(ctx, every)
}

// look checks every agent's queue at intervals.
func (o *lookout) look(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			o.round++
			o.lookAtAll(func(i int) bool { return (i+o.round)%wholeRounds == 0 })
		}
	}
}

// lookAtAll checks the queues of the agents that may have work. Of those that were
// empty, and whose inbox has not changed since, it looks only into the chosen ones.
func (o *lookout) lookAtAll(chosen func(i int) bool) {
	o.s.mu.Lock()
	members := slices.Clone(o.s.fleet.members)
	o.s.mu.Unlock()
	for i, m := range members {
		if o.s.inspect(m); chosen(i) {
			o.s.look(m)
		}
	}
}
