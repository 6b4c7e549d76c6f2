// Package memo keeps what people were told about a fleet, what is still on its way to them,
// and what became of each message, in the fleet's store. It decides nothing.
package memo

import (
	"maps"
	"slices"
	"time"

	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
)

// State is what a run hands to the next one.
type State struct {
	Told  notice.Memory
	Boxes map[string]*outbox.Box // :: target → what is still to be delivered
	// Marks are how far the dead letters and replies of agents were read.
	Marks map[string]*Mark
	// Ping is since when pings fail, and why; nil: they arrive.
	Ping *Ping
	// Heads are the first prompts of the agents' queues.
	Heads map[string]*Head
	// Replied are the keys of the latest replies that were handled; the first is the one with
	// the number Before.
	Replied []string
	Before  int
}

// New returns the state of a fleet of which nobody was told anything.
func New() *State {
	return &State{Told: notice.Memory{}, Boxes: map[string]*outbox.Box{}, Marks: map[string]*Mark{}, Heads: map[string]*Head{}}
}

// Mark is how far the dead letters and replies of one agent were read.
type Mark struct {
	Dead, Reply time.Time
	ReplyID     string // the delivery id of the last one
}

// Ping is since when pings fail, and why.
type Ping struct {
	Since time.Time
	Why   string
}

// Head is the first prompt of an agent's queue, and since when it has been the first.
type Head struct {
	ID    string
	Since time.Time
	// Saved is true once it is worth keeping: most are first for moments only.
	Saved bool
}

// mostGone bounds how many agents' marks are kept that are gone.
const mostGone = 1000

// Forget removes the marks of agents that are gone, but for those that were read last: an agent
// may come back.
func (s *State) Forget(gone func(agent string) bool) {
	if len(s.Marks) <= mostGone {
		return
	}
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Marks)), func(agent string) bool { return !gone(agent) })
	slices.SortStableFunc(all, func(a, b string) int { return s.Marks[b].last().Compare(s.Marks[a].last()) })
	for _, agent := range all[min(len(all), mostGone):] {
		delete(s.Marks, agent)
	}
}

// last is when the last one was written that was read.
func (m *Mark) last() time.Time {
	if m.Dead.After(m.Reply) {
		return m.Dead
	}
	return m.Reply
}

// mostReplied bounds the keys that are kept.
const mostReplied = 500

// IsReplied reports whether a reply was handled.
func (s *State) IsReplied(key string) bool { return slices.Contains(s.Replied, key) }

// Reply notes that a reply was handled.
func (s *State) Reply(key string) {
	s.Replied = append(s.Replied, key)
	if more := len(s.Replied) - mostReplied; more > 0 {
		s.Replied, s.Before = slices.Delete(s.Replied, 0, more), s.Before+more
	}
}
