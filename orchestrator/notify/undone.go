package notify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/queue"
)

// A notice of a prompt that was given up may wait: for others like it, or for a target that
// does not answer. A person may have queued the prompt again meanwhile, or deleted the dead
// letter.

// stands returns what reports whether a dead letter of an agent is still there. It reads
// those of each agent once, when it is asked; where they cannot be read, they are there.
func (w *Watch) stands(ctx context.Context) func(agent, of string) bool {
	read := map[string]map[string]bool{}
	return func(agent, of string) bool {
		there, known := read[agent]
		if a := w.fleet.Agent(agent); !known && a != nil {
			there = deadLetters(ctx, a)
			read[agent] = there
		}
		return there == nil || there[of]
	}
}

// deadLetters are an agent's, by their keys; nil: nobody knows.
func deadLetters(ctx context.Context, a *config.Agent) (all map[string]bool) {
	err := queue.Read(ctx, a, func(q *inbox.Queue) error {
		all = map[string]bool{}
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			all[keyOf(d)] = true
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return all
}

// gone counts the dead letters of a notice that are not there any more.
func gone(n notice.Notice, stands func(agent, of string) bool) (count int) {
	for _, of := range n.Of {
		if !stands(n.Agent, of) {
			count++
		}
	}
	return count
}

// retract takes back what is about to be told of nothing but dead letters that are gone.
// Who waits for the reply to one of them is told all the same.
func (w *Watch) retract(b *outbox.Box, stands func(agent, of string) bool, now time.Time) {
	if b.Retract(now, func(n notice.Notice) bool { return n.To == "" && len(n.Of) > 0 && gone(n, stands) == len(n.Of) }) {
		w.unsaved = true
	}
}

// asItIs returns a message with what has become of its dead letters since it was made.
func asItIs(m outbox.Message, stands func(agent, of string) bool) outbox.Message {
	m.Notices = slices.Clone(m.Notices)
	for i := range m.Notices {
		n := &m.Notices[i]
		switch count := gone(*n, stands); {
		case count == 0:
		case count < len(n.Of):
			n.Text += fmt.Sprintf("; %d of them queued again or deleted since", count)
		default:
			n.Text, n.Do = n.Text+"; queued again or deleted since", ""
		}
	}
	return m
}
