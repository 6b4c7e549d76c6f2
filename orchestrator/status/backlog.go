package status

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
	// Queued counts the entries behind the one in flight, Since is when the first
	// of them was first seen, or zero.
	Queued int       `json:"queued"`
	Since  time.Time `json:"since,omitzero"`
	Dead   int       `json:"dead_letters"`
	// Problem says why the queue could not be read.
	Problem string `json:"problem,omitempty"`
}

// BacklogFor is how long a look at the queues is good for: however often
// somebody asks, the disks are not read more often.
const BacklogFor = 5 * time.Second

// Backlogs keeps what the last look at the queues of a fleet has found. The zero
// value is ready for use, by several goroutines.
type Backlogs struct {
	mu   sync.Mutex
	at   time.Time
	all  []Backlog
	kept map[string]*keptQueue // :: inbox → what was found there
}

// Queue is a queue to look at. An idle agent has nothing queued: its queue is
// not opened.
type Queue struct {
	*config.Agent
	Idle bool
}

// keptQueue is what is kept of a queue from one look to the next.
type keptQueue struct {
	first string // delivery id of the first queued entry
	since time.Time
	dead  inbox.DeadCount
	info  os.FileInfo // of the dead letters when they were counted
}

// Look looks at the queues that it is given when it asks for them. Dead letters
// that have not changed are not read again, and what was found less than
// BacklogFor ago is returned as it was.
func (b *Backlogs) Look(queues func() []Queue) []Backlog {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all != nil && time.Since(b.at) < BacklogFor {
		return b.all
	}
	targets := queues()
	all, kept := make([]Backlog, 0, len(targets)), make(map[string]*keptQueue, len(targets))
	for _, t := range targets {
		k := b.kept[t.Inbox]
		if k == nil {
			k = &keptQueue{}
		}
		kept[t.Inbox] = k
		all = append(all, k.look(t))
	}
	b.at, b.all, b.kept = time.Now(), all, kept
	return all
}

func (k *keptQueue) look(t Queue) Backlog {
	b := Backlog{Agent: t.Name}
	info, err := os.Lstat(inbox.DeadLetterFile(t.Inbox))
	changed := err == nil && (k.info == nil || info.Size() != k.info.Size() || !info.ModTime().Equal(k.info.ModTime()))
	if err != nil {
		k.dead, k.info = inbox.DeadCount{}, nil
	}
	changed = changed || k.dead.More // as far as it was counted
	if !t.Idle || changed {
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
func (k *keptQueue) open(t Queue, b *Backlog, info os.FileInfo, changed bool) error {
	q, err := queue.Open(t.Agent)
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
	depth, err := q.Depth(countBytes)
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
