package orchestrator

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
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
	if errors.Is(err, fs.ErrNotExist) {
		return inbox.Depth{}, nil // nobody has queued anything yet
	}
	if err != nil {
		return inbox.Depth{}, err
	}
	defer q.Close()
	return q.Depth(lookAhead)
}

// look is what a look into an agent's queue found.
type look struct {
	depth inbox.Depth
	err   error
	stamp stamp // of the inbox before the look
}

// work reports whether a session has something to do: an entry, or one that goes
// on.
func (l look) work() bool { return l.depth.Entries > 0 || passing(l.depth.Failure) }

func lookInto(a *config.Agent) look {
	l := look{stamp: stampOf(a.Inbox)}
	l.depth, l.err = pending(a)
	return l
}

// stamp tells whether an inbox was changed since it was looked into, at a
// hundredth of the cost of a look. The zero value is that of no inbox that was
// looked into.
type stamp struct {
	known    bool
	size     int64
	modified time.Time
}

// stampOf returns the present stamp; that of an inbox which is not there has
// no size and no time.
func stampOf(path string) stamp {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{known: errors.Is(err, fs.ErrNotExist)}
	}
	return stamp{known: true, size: info.Size(), modified: info.ModTime()}
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
