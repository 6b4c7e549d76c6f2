package orchestrator

import (
	"os"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
)

// Backlog is what of an agent's queue stands on the disk.
type Backlog struct {
	Agent string `json:"agent"`
	// Queued counts the entries behind the one in flight, Since is when this run
	// first saw the first of them, or zero.
	Queued int       `json:"queued"`
	Since  time.Time `json:"since,omitzero"`
	Dead   int       `json:"dead_letters"`
	// Problem says why the queue could not be read.
	Problem string `json:"problem,omitempty"`
}

// backlogFor is how long a look at the queues is good for: however often
// somebody asks, the disks are not read more often.
const backlogFor = 5 * time.Second

// backlogs is what the last look at the queues has seen.
type backlogs struct {
	mu   sync.Mutex
	at   time.Time
	all  []Backlog
	seen map[*agent]*seenQueue
}

// seenQueue is what is kept of a queue from one look to the next.
type seenQueue struct {
	first string // delivery id of the first queued entry
	since time.Time
	dead  inbox.DeadCount
	info  os.FileInfo // of the dead letters when they were counted
}

// Backlog looks at the agents' queues, without the scheduler's lock. An idle
// agent has nothing queued, as far as the scheduler knows; its queue is not
// opened, nor are dead letters read again that have not changed. What was seen
// less than five seconds ago is returned as it was.
func (s *Scheduler) Backlog() []Backlog {
	b := &s.backlogs
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all != nil && time.Since(b.at) < backlogFor {
		return b.all
	}
	targets := s.queues()
	all, seen := make([]Backlog, 0, len(targets)), make(map[*agent]*seenQueue, len(targets))
	for _, t := range targets {
		q := b.seen[t.a]
		if q == nil {
			q = &seenQueue{}
		}
		seen[t.a] = q
		all = append(all, q.look(t))
	}
	b.at, b.all, b.seen = time.Now(), all, seen
	return all
}

// queueOf is an agent's queue, and whether it has to be opened.
type queueOf struct {
	a    *agent
	cfg  *config.Agent
	busy bool
}

func (s *Scheduler) queues() []queueOf {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]queueOf, 0, len(s.agents))
	for a := range s.shownLocked() {
		all = append(all, queueOf{a, a.cfg, a.state != Idle})
	}
	return all
}

func (k *seenQueue) look(t queueOf) Backlog {
	b := Backlog{Agent: t.cfg.Name}
	info, err := os.Lstat(inbox.DeadLetterFile(t.cfg.Inbox))
	changed := err == nil && (k.info == nil || info.Size() != k.info.Size() || !info.ModTime().Equal(k.info.ModTime()))
	if err != nil {
		k.dead, k.info = inbox.DeadCount{}, nil
	}
	changed = changed || k.dead.More // as far as it was counted
	if t.busy || changed {
		if err := k.open(t, &b, info, changed); err != nil {
			b.Problem = err.Error()
		}
	}
	if b.Queued == 0 {
		k.first, k.since = "", time.Time{}
	}
	b.Since, b.Dead = k.since, k.dead.Entries
	return b
}

// open reads what has to be read.
func (k *seenQueue) open(t queueOf, b *Backlog, info os.FileInfo, changed bool) error {
	q, err := queue.Open(t.cfg)
	if err != nil {
		return err
	}
	defer q.Close()
	if changed {
		if err := q.CountDead(&k.dead); err != nil {
			return err
		}
		k.info = info
	}
	depth, err := q.Depth(statusLook)
	if err != nil || depth.Entries == 0 {
		return err
	}
	b.Queued = depth.Entries
	first, err := q.List(1)
	if err == nil && len(first) == 1 && first[0].DeliveryID != k.first {
		k.first, k.since = first[0].DeliveryID, time.Now()
	}
	return err
}
