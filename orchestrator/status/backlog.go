package status

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
)

// Backlog is how much an agent's queue on disk holds.
type Backlog struct {
	Agent string `json:"agent"`
	// Queued counts the entries behind the one in flight. Since is when the first
	// of them was first seen; zero if there is none.
	Queued int       `json:"queued"`
	Since  time.Time `json:"since,omitzero"`
	Dead   int       `json:"dead_letters"`
	// First is the delivery id of the first of them, or "".
	First string `json:"-"`
	// Problem says why the queue, or one of its files, could not be read. Asks is true if it asks a person
	// where to continue.
	Problem string `json:"problem,omitempty"`
	Asks    bool   `json:"-"`
}

// BacklogFor is how long a result is cached: the disks are not read more often
// than this, however often somebody asks.
const BacklogFor = 5 * time.Second

// Backlogs caches the backlogs of a fleet. The zero value is ready to use, and
// safe for concurrent use.
type Backlogs struct {
	mu   sync.Mutex
	at   time.Time
	all  []Backlog
	kept map[string]*keptQueue // :: inbox → what was found there
	next int                   // the queue whose files are examined first at the next look
}

// examined is how many queues' files are examined in one look: each of them is opened.
const examined = 100

// Queue is a queue to count. An idle agent has nothing queued, so its queue is
// not opened.
type Queue struct {
	*config.Agent
	Idle bool
}

// keptQueue is what Backlogs remembers about a queue from one count to the next.
type keptQueue struct {
	first string // delivery id of the first queued entry
	since time.Time
	dead  inbox.DeadCount
	stamp durable.Stamp // of the dead-letter file when it was counted
	// unread says which of its files cannot be read, and why, or is "".
	unread string
}

// Look returns the backlogs of the queues that the function queues returns. It
// returns the last result if that is younger than BacklogFor, and calls queues
// only if it is not. It reads dead letters again only if their file has changed, and
// examines the files of some queues in turn, also where the agent is idle.
func (b *Backlogs) Look(queues func() []Queue) []Backlog {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all != nil && time.Since(b.at) < BacklogFor {
		return b.all
	}
	targets := queues()
	all, kept := make([]Backlog, 0, len(targets)), make(map[string]*keptQueue, len(targets))
	for i, t := range targets {
		k := b.kept[t.Inbox]
		if k == nil {
			k = &keptQueue{}
		}
		kept[t.Inbox] = k
		if n := len(targets); ((i-b.next)%n+n)%n < examined {
			k.unread = unread(hiding(queue.Obstacles(t.Agent)))
		}
		all = append(all, k.look(t))
	}
	b.at, b.all, b.kept, b.next = time.Now(), all, kept, (b.next+examined)%max(1, len(targets))
	return all
}

func (k *keptQueue) look(t Queue) Backlog {
	b := Backlog{Agent: t.Name}
	info, err := os.Lstat(inbox.DeadLetterFile(t.Inbox))
	stamp := durable.StampOf(info, err)
	changed := err == nil && !k.stamp.Same(stamp)
	if err != nil {
		k.dead, k.stamp = inbox.DeadCount{}, durable.Stamp{}
	}
	changed = changed || k.dead.More // the last count did not reach the end
	if !t.Idle || changed {
		if err := k.open(t, &b, stamp, changed); err != nil {
			b.Problem, b.Asks = err.Error(), errors.Is(err, inbox.ErrNeedsOperator)
		}
	}
	b.Problem = cmp.Or(b.Problem, k.unread)
	if b.Queued == 0 {
		k.first, k.since = "", time.Time{}
	}
	b.Since, b.First, b.Dead = k.since, k.first, k.dead.Entries
	return b
}

// open counts the queue and, if they have changed, the dead letters.
func (k *keptQueue) open(t Queue, b *Backlog, stamp durable.Stamp, changed bool) error {
	q, err := queue.Open(t.Agent)
	if err != nil {
		return err
	}
	defer q.Close()
	if changed {
		if err := q.CountDead(&k.dead); err != nil {
			return err
		}
		k.stamp = stamp
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
