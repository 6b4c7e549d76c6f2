package queue

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
)

// Lost follows the entries that somebody took out of an agent's inbox: the dead letters with the
// reason inbox.Lost. The zero value has seen none.
type Lost struct {
	stamp durable.Stamp
	count *inbox.DeadCount // nil where there are no dead letters: most agents have none
	begun bool
}

// News returns how many were added since the last call, and the latest of them. The first call
// returns none. It opens a file only if the dead letters have changed.
func (l *Lost) News(a *config.Agent) (n int, last inbox.DeadEntry) {
	info, err := os.Lstat(inbox.DeadLetterFile(a.Inbox))
	stamp := durable.StampOf(info, err)
	if l.begun && (l.count == nil || !l.count.More) && l.stamp.Same(stamp) {
		return 0, last
	}
	if errors.Is(err, fs.ErrNotExist) {
		*l = Lost{stamp: stamp, begun: true}
		return 0, last
	}
	if l.count == nil {
		l.count = &inbox.DeadCount{}
	}
	before, newest := l.count.Lost, l.count.LastLost.At
	err = Read(context.Background(), a, func(q *inbox.Queue) error { return q.CountDead(l.count) })
	if err != nil {
		return 0, last
	}
	l.stamp = stamp
	if begun := l.begun; !begun {
		l.begun = !l.count.More
		return 0, last
	}
	if n = l.count.Lost - before; n <= 0 && l.count.LastLost.At.After(newest) {
		n = lostAfter(a, newest) // others were queued again, or deleted, meanwhile
	}
	return max(0, n), l.count.LastLost
}

// lostAfter counts the entries that were taken out of the inbox after a time.
func lostAfter(a *config.Agent, at time.Time) (n int) {
	_ = Read(context.Background(), a, func(q *inbox.Queue) error { // what cannot be read is counted later
		var all inbox.Mark
		for d, err := range q.DeadLettersFrom(&all) {
			if err != nil {
				return err
			}
			if d.Reason == inbox.Lost && d.At.After(at) {
				n++
			}
		}
		return nil
	})
	return n
}

// Recheck returns the part of a loss that is not in the agent's present queue, or nil: another
// folder may have the same contents.
func Recheck(a *config.Agent, l session.Loss) *session.Loss {
	asked := slices.Clone(l.IDs)
	if l.InFlight != nil {
		asked = append(asked, l.InFlight.DeliveryID)
	}
	if len(asked) == 0 {
		return &l
	}
	lacks := asked
	_ = Read(context.Background(), a, func(q *inbox.Queue) error { // what cannot be read counts as missing
		left, err := q.Lacks(asked)
		if err == nil {
			lacks = left
		}
		return err
	})
	if len(lacks) == 0 {
		return nil
	}
	if f := l.InFlight; f != nil {
		if i := slices.Index(lacks, f.DeliveryID); i >= 0 {
			lacks = slices.Delete(lacks, i, i+1)
		} else {
			l.InFlight = nil
		}
	}
	if l.Queued -= len(l.IDs) - len(lacks); len(lacks) == 0 {
		l.Queued, l.More = 0, false
	}
	l.IDs = lacks
	return &l
}
