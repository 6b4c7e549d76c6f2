// Package oldqueue remembers which queues the agents of a fleet have had. An agent that is
// removed from the file, or gets another dir or inbox, leaves behind what was queued for it: no
// run sees that any more, so it has to be told. What is in such a queue is never changed here.
package oldqueue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/status"
)

// had is a queue that an agent has, or had.
type had struct {
	Agent string `json:"agent"`
	Dir   string `json:"dir"`
	Home  string `json:"home"`
	Inbox string `json:"inbox"`
	// Gone is since when no agent has it, or zero.
	Gone time.Time `json:"gone,omitzero"`
}

// mostGone limits how many queues that no agent has are remembered.
const mostGone = 1000

// lockWait is how long Note waits for another process that notes.
const lockWait = 5 * time.Second

func path(stateDir string) string { return filepath.Join(stateDir, "queues.json") }

// Note keeps that a fleet's agents, all of them, have their queues. Queues that no agent has
// any more are forgotten once nothing is left in them.
func Note(stateDir string, agents []*config.Agent, now time.Time) error {
	if err := note(stateDir, agents, now); err != nil {
		return fmt.Errorf("cannot note which queues the agents have: %w", err)
	}
	return nil
}

func note(stateDir string, agents []*config.Agent, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, err := flock.Lock(ctx, filepath.Join(stateDir, ".queues-lock"))
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	before, err := read(stateDir)
	if errors.Is(err, state.ErrDamaged) {
		before, err = nil, os.Rename(path(stateDir), path(stateDir)+".damaged")
	}
	if err != nil {
		return err
	}
	next := make([]had, 0, len(agents))
	for _, a := range agents {
		next = append(next, had{Agent: a.Name, Dir: a.Dir, Home: a.Home, Inbox: a.Inbox})
	}
	kept := 0
	for _, h := range gone(before, agents) {
		if kept == mostGone || h.done(stateDir) {
			continue
		}
		if h.Gone.IsZero() {
			h.Gone = now
		}
		next, kept = append(next, h.had), kept+1
	}
	if slices.Equal(before, next) {
		return nil
	}
	return state.Save(path(stateDir), next)
}

// Waiting returns the queues that agents of a fleet had, that none of its agents has now, and
// in which something is left. agents are all of the file.
func Waiting(stateDir string, agents []*config.Agent) (all []status.OldQueue) {
	before, err := read(stateDir)
	if err != nil {
		return []status.OldQueue{{Problem: "it cannot be told which queues the agents had: " + err.Error()}}
	}
	for _, h := range gone(before, agents) {
		if q := h.look(); !q.Empty() && !h.others(stateDir) {
			all = append(all, q)
		}
	}
	return all
}

func read(stateDir string) (all []had, err error) {
	if err := state.Load(path(stateDir), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return all, nil
}

// former is a queue that no agent has.
type former struct {
	had
	shared bool // an agent has its directory
}

func gone(all []had, agents []*config.Agent) (left []former) {
	inboxes, dirs := make(map[string]bool, len(agents)), make(map[string]bool, len(agents))
	for _, a := range agents {
		inboxes[a.Inbox], dirs[a.Dir] = true, true
	}
	for _, h := range all {
		if !inboxes[h.Inbox] {
			left = append(left, former{h, dirs[h.Dir]})
		}
	}
	return left
}

// agent is who had the queue, as far as its files need it.
func (h former) agent() *config.Agent {
	return &config.Agent{Name: h.Agent, Dir: h.Dir, Home: h.Home, Inbox: h.Inbox, MaxEntry: config.DefaultMaxEntry}
}

// others reports whether an agent of another fleet has the queue now. The directory, where
// agents may write, only says which fleet to ask.
func (h former) others(stateDir string) bool {
	other := owner.OriginOf(h.agent()).StateDir
	if !slices.Contains(state.Beside(stateDir), other) {
		return false
	}
	theirs, _ := read(other)
	return slices.ContainsFunc(theirs, func(t had) bool { return t.Inbox == h.Inbox && t.Gone.IsZero() })
}

// done reports whether nothing of the queue will have to be told. A directory that is not
// there may come back.
func (h former) done(stateDir string) bool {
	if _, err := os.Lstat(h.Dir); err != nil {
		return false
	}
	return h.look().Empty() || h.others(stateDir)
}

// countBytes limits how many bytes of a queue are read to count what is queued.
const countBytes = 8 << 20

// look says what is left in the queue. Prompts that wait for their time are their
// directory's: an agent that has it has them, too.
func (h former) look() status.OldQueue {
	a := h.agent()
	on := status.OldQueue{Agent: h.Agent, Dir: h.Dir, Home: h.Home, Inbox: h.Inbox, Shared: h.shared, Since: h.Gone}
	err := queue.Read(context.Background(), a, func(q *inbox.Queue) error {
		depth, err := q.Depth(countBytes)
		on.Prompts = depth.Entries + depth.Aside + depth.Returning
		if err != nil {
			return err
		}
		flight, err := q.Peek()
		if flight != nil {
			on.Prompts++
		}
		return err
	})
	if !h.shared {
		timed, unread := later.List(a)
		on.Prompts += len(timed)
		err = errors.Join(err, unread)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		on.Problem = err.Error()
	}
	return on
}
