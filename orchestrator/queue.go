package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/operator"
)

// lookAhead bounds how many bytes of a queue are read to see whether work is
// queued: more than the largest entry.
const lookAhead = 2 << 20

// pending says whether anything is queued for an agent.
func pending(a *config.Agent) (inbox.Depth, error) {
	q, err := operator.Open(a)
	if err != nil {
		return inbox.Depth{}, err
	}
	defer q.Close()
	return q.Depth(lookAhead)
}

// settleTail lets the queue complete a line whose writer has gone quiet
// without a newline. Nothing else is done with what it finds.
func settleTail(a *config.Agent, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	q, err := operator.Open(a)
	if err != nil {
		return
	}
	defer q.Close()
	unlock, err := q.Lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	if _, err := q.Next(); err != nil && !errors.Is(err, inbox.ErrEmpty) {
		log.Warn("cannot read the queue", "agent", a.Name, "err", err)
	}
}

// stillThere reports whether a fire of the trigger is queued or in flight.
func stillThere(q *inbox.Queue, source string) (bool, error) {
	trigger, _, _ := strings.Cut(source, "@")
	flight, err := q.Peek()
	if err != nil {
		return false, err
	}
	if flight != nil && strings.HasPrefix(flight.Source, trigger+"@") {
		return true, nil
	}
	entries, err := q.List(overlapLook)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Source, trigger+"@") {
			return true, nil
		}
	}
	return false, nil
}

// overlapLook is how many queued entries are searched for an earlier fire of
// the same trigger: one is there at most, unless others queue much more.
const overlapLook = 10_000
