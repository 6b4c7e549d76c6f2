package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// ground is what a session stands on: its folders and its lock. When one of
// them goes (git clean, a clone in its place), hooks find no session any more,
// nothing can be acknowledged, and another session could begin beside it.
type ground struct {
	Ground
	looked time.Time
	gone   time.Time // since when something is not what it was, or zero

	census  census
	counted time.Time // when it was taken
	of      countedOf
}

// countedOf is by what it is told that a queue has changed.
type countedOf struct {
	inbox durable.Stamp
	work  string
	done  int
}

// Ground is folders and files as they were when they were noted.
type Ground []place

type place struct {
	path string
	was  os.FileInfo
}

// census is what a queue held when it was looked at.
type census struct {
	queued int
	more   bool // at least so many
}

// Loss is what went with a queue's folder, as far as is known: how many prompts
// were queued when it was last looked at, and which one was in flight.
type Loss struct {
	What     string     `json:"what"`
	Queued   int        `json:"queued"`
	More     bool       `json:"more,omitempty"` // at least so many
	InFlight *hook.Work `json:"in_flight,omitempty"`
}

// String is one line about it.
func (l *Loss) String() string {
	queued := fmt.Sprintf("%d prompts were queued", l.Queued)
	switch {
	case l.More:
		queued = fmt.Sprintf("at least %d prompts were queued", l.Queued)
	case l.Queued == 1:
		queued = "1 prompt was queued"
	}
	if f := l.InFlight; f != nil {
		queued += fmt.Sprintf(", entry %s was in flight", f.DeliveryID)
		if f.Source != "" {
			queued += " (" + f.Source + ")"
		}
	}
	return l.What + "; " + queued
}

// Grounds are the folders that a queue stands in, and the agent's own.
func Grounds(dir, home, inbox string) []string {
	all := []string{dir, home, filepath.Dir(inbox)}
	return slices.Compact(all)
}

// StandOn notes what is there now; an error is about what is not.
func StandOn(paths ...string) (Ground, error) {
	var g Ground
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		g = append(g, place{path, info})
	}
	return g, nil
}

const (
	// groundEvery is how often the ground is looked at, GroundPatience how long
	// something may be away, such as for a rename there and back.
	groundEvery    = 500 * time.Millisecond
	GroundPatience = time.Second
	// countEvery is how often what is queued is counted where it changes, and
	// countBytes how much of it.
	countEvery = 5 * time.Second
	countBytes = 1 << 20
)

// look says what has gone for good, or "".
func (g *ground) look(now time.Time) string {
	if now.Sub(g.looked) < groundEvery {
		return ""
	}
	g.looked = now
	what := g.Differs()
	switch {
	case what == "":
		g.gone = time.Time{}
	case g.gone.IsZero():
		g.gone = now
	case now.Sub(g.gone) >= GroundPatience:
		return what
	}
	return ""
}

// Differs says what is not what it was, or "". What cannot be seen may be the
// same.
func (g Ground) Differs() string {
	for _, p := range g {
		if what := p.differs(); what != "" {
			return what
		}
	}
	return ""
}

func (p place) differs() string {
	switch info, err := os.Lstat(p.path); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return p.path + " is gone"
	case err != nil:
		return ""
	case !os.SameFile(info, p.was):
		return p.path + " is another one"
	}
	return ""
}

// count keeps how much is queued while that can be known.
func (g *ground) count(q *inbox.Queue, path string, seen *sight, done int, now time.Time) {
	if !g.counted.IsZero() && now.Sub(g.counted) < countEvery {
		return
	}
	g.counted = now
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	of := countedOf{durable.StampOf(info, nil), seen.work, done}
	if g.of.inbox.Same(of.inbox) && g.of.work == of.work && g.of.done == of.done {
		return
	}
	if d, err := q.Depth(countBytes); err == nil {
		g.of, g.census = of, census{d.Entries, d.More}
	}
}
