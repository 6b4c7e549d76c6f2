package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// noStamp belongs to an inbox about which nothing is known.
var noStamp queue.Stamp

// hasWork reports whether a session has something to do: an entry, or one that
// continues or is not proven.
func hasWork(d inbox.Depth) bool {
	return d.Entries > 0 || agent.Passing(d.Failure) || d.State == inbox.Unproven || d.Returning > 0
}

// queues notices what is put into the members' queues, and takes what it finds there.
type queues struct {
	*Scheduler
	unwatch context.CancelFunc // ends the watch of the inboxes
	// backlogs are what readers are told of the queues.
	backlogs status.Backlogs
}

// look looks into the queue of a member that wants work, without the lock, so that
// no disk delays the fleet.
func (q *queues) look(m *member) {
	for {
		q.mu.Lock()
		wants, cfg, moves := q.fleet.wants(m, q.opt.Now()), m.Def(), m.Moves()
		q.mu.Unlock()
		if !wants {
			return
		}
		l := queue.LookInto(cfg)
		q.missing(m, cfg) // which the look may have filed
		same := false
		q.happened(m, func(now time.Time) {
			if same = m.Moves() == moves && m.Def() == cfg && q.fleet.wants(m, now); same {
				q.found(m, l, now)
			}
		})
		if same {
			return
		}
	}
}

// found takes what is queued for a member that wants work.
func (q *queues) found(m *member, l queue.Look, now time.Time) {
	q.fleet.once.news = true
	m.empty = noStamp
	m.Counted(l.Depth.Entries, l.Depth.Names)
	switch {
	case m.Owes():
		m.Recover("what was in flight was dealt with")
	case l.Err != nil:
		m.Fails(*q.failure(m.Def(), l.Err), now, agent.Roll())
	case l.Depth.State.InSession() && !agent.Passing(l.Depth.Failure):
		// An earlier run was killed while it started that session, which this one does not know.
		m.Recover("what was in flight was dealt with")
	case l.Depth.State == inbox.Checking: // nobody has said so
		m.ToCheck()
	case !hasWork(l.Depth):
		if !l.Depth.Tail {
			m.empty = l.Stamp
		}
		m.Nothing(l.Depth.Tail, now)
		q.fleet.declines(m, now)
	case q.fleet.may(m, now):
		line := q.fleet.line.obstacle(m, now)
		if m.Begin(line, now); line == "" {
			q.fleet.line.lastStart = now
		}
	}
}

// hinted looks into the queue of a member after a hint that may mean nothing: not
// if it has work already, nor if it was empty and its inbox has not changed since.
func (q *queues) hinted(m *member) {
	q.mu.Lock()
	idle, path, empty := m.State() == status.Idle, m.Def().Inbox, m.empty
	if m.live != nil {
		m.live.Order(session.Order{Queued: true})
	}
	q.mu.Unlock()
	switch {
	case !idle:
		q.happened(m, m.CountLater)
	case !empty.Still(path):
		q.look(m)
	}
}

// appended is for an entry that we appended ourselves. If the member's state has
// not changed since before, nobody has taken the entry, and the queue need not be
// looked into, unless another one is in flight.
func (q *queues) appended(m *member, moves int) {
	q.mu.Lock()
	idle, path := m.State() == status.Idle, m.Def().Inbox
	if m.live != nil {
		m.live.Order(session.Order{Queued: true})
	}
	q.mu.Unlock()
	taken, same := idle && queue.Taken(path), false
	q.happened(m, func(now time.Time) {
		m.Fired()
		same = m.Moves() == moves && !taken
		if same && m.State() == status.Idle && q.fleet.wants(m, now) {
			q.found(m, queue.Look{Depth: inbox.Depth{Entries: 1}}, now)
		}
	})
	if !same {
		q.hinted(m)
	}
}

// completeTail lets a quiet writer's last line count, and looks at it.
func (q *queues) completeTail(m *member, cfg *config.Agent) {
	if err := queue.CompleteTail(cfg); err != nil {
		q.log.Warn("cannot read the queue", "agent", m.Name, "err", err)
	}
	q.look(m)
}

// count counts what is queued for a member that does not start.
func (q *queues) count(m *member, cfg *config.Agent) {
	l := queue.LookInto(cfg)
	q.missing(m, cfg) // which the look may have filed
	q.happened(m, func(now time.Time) {
		if l.Err == nil && l.Depth.Entries > 0 && m.Def() == cfg && m.Recounted(l.Depth.Entries, l.Depth.Names, now) {
			q.fleet.accounts.Hurry(m.Name, agent.HurryAfter)
		}
	})
}

// missing says that somebody has taken prompts out of a member's inbox. Who found
// that, a hook or a look, has made dead letters of them.
func (q *queues) missing(m *member, cfg *config.Agent) {
	m.missing.Lock()
	n, last := m.missing.of.News(cfg)
	m.missing.Unlock()
	if n == 0 {
		return
	}
	q.happened(m, func(time.Time) { // a run with --once has failed
		for range n {
			m.DeadLettered()
		}
	})
	detail := fmt.Sprintf("%d prompts that were queued are dead letters now", n)
	if n == 1 {
		detail = "1 prompt that was queued is a dead letter now"
	}
	if last.ID != "" {
		detail += ", the last one: " + last.ID
	}
	q.records.note(journal.Event{Agent: cfg.Name, Kind: journal.QueueLost, Reason: foreign.Text(last.Cause), Detail: foreign.Text(detail)})
}

// reclaim frees the disk space of a member's acknowledged entries. Its session may
// live.
func (q *queues) reclaim(m *member, cfg *config.Agent) {
	again, err := queue.Reclaim(cfg)
	if err != nil {
		q.log.Warn(err.Error(), "agent", m.Name)
	}
	if again {
		q.happened(m, m.ReclaimLater)
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

// watch learns from the system's notifications what others append, for the present
// agents. The caller holds Scheduler.changing.
func (q *queues) watch() {
	if q.opt.Inboxes == nil {
		return
	}
	if q.unwatch != nil {
		q.unwatch()
	}
	var ctx context.Context
	ctx, q.unwatch = context.WithCancel(q.work)
	byPath, byFolder := q.inboxes()
	q.wg.Go(func() {
		err := q.opt.Inboxes(ctx, slices.Sorted(maps.Keys(byFolder)), func(path string) {
			if m := byPath[path]; m != nil {
				q.hinted(m)
			}
			for _, m := range byFolder[path] {
				q.directories.inspect(m)
			}
		})
		if err != nil {
			q.log.Warn("queues are checked every second instead", "err", err)
			q.sweep(ctx, blindEvery)
		}
	})
}

// watchAnew watches the inboxes where they are now.
func (q *queues) watchAnew() {
	q.changing.Lock()
	defer q.changing.Unlock()
	q.mu.Lock()
	works := q.fleet.works()
	q.mu.Unlock()
	if works {
		q.watch()
	}
}

// all returns the agents' queues as far as the Scheduler knows them.
func (q *queues) all() []status.Queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]status.Queue, 0, len(q.fleet.members))
	for m := range q.fleet.shown() {
		all = append(all, status.Queue{Agent: m.Def(), Idle: m.Empty()})
	}
	return all
}

// inboxes returns the members by inbox, and by the folders of their inboxes.
func (q *queues) inboxes() (byPath map[string]*member, byFolder map[string][]*member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	byPath, byFolder = map[string]*member{}, map[string][]*member{}
	for _, m := range q.fleet.members {
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
func (q *queues) around(ctx context.Context) {
	every := sweepEvery
	if q.opt.Inboxes == nil {
		every = blindEvery
	}
	q.sweep(ctx, every)
}

// sweep checks every agent's queue at intervals, and looks into each of them every
// wholeRounds rounds. Two may run at once: one regularly, one where nobody notifies.
func (q *queues) sweep(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for round := 1; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			q.heedClock()
			q.lookAtAll(func(i int) bool { return (i+round)%wholeRounds == 0 })
		}
	}
}

// lookAtAll checks the queues of the agents that may have work. Of those that were
// empty, and whose inbox has not changed since, it looks only into the chosen ones.
func (q *queues) lookAtAll(chosen func(i int) bool) {
	q.mu.Lock()
	members := slices.Clone(q.fleet.members)
	q.mu.Unlock()
	for i, m := range members {
		if q.directories.inspect(m); chosen(i) {
			q.look(m)
		}
		q.hint(m)
	}
}

// hint tells a live session that its queue has changed since it was told so, or looked at, last.
func (q *queues) hint(m *member) {
	q.mu.Lock()
	live, cfg, before := m.live, m.Def(), m.trail
	q.mu.Unlock()
	if live == nil {
		return
	}
	trail := queue.TrailOf(cfg)
	if before.Same(trail) {
		return
	}
	q.mu.Lock()
	m.trail = trail
	q.mu.Unlock()
	live.Order(session.Order{Queued: true})
}
