package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/durable"
)

// ground is what a session depends on: its folders and its lock. If one of them is
// removed or replaced (git clean, a new clone), hooks no longer find a session,
// nothing can be acknowledged, and another session could begin beside this one.
type ground struct {
	Ground
	looked time.Time
	gone   time.Time // since when something differs, or zero

	census  census
	counted time.Time // when it was taken
	of      countedOf
}

// countedOf changes when a queue has changed.
type countedOf struct {
	heard int
	work  string
	done  int
}

// Ground is folders and files as they were when they were recorded.
type Ground []place

type place struct {
	path string
	was  durable.Identity
}

// census is what a queue held when it was counted.
type census struct {
	queued int
	more   bool // at least so many
	names  []string
}

// Loss is what was lost with a queue's folder, as far as is known: how many prompts
// were queued when it was last counted, and which one was in flight.
type Loss struct {
	What     string     `json:"what"`
	Queued   int        `json:"queued"`
	More     bool       `json:"more,omitempty"` // at least so many
	IDs      []string   `json:"ids,omitempty"`  // of the first ones, as wire.Depth names them
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
	if len(l.IDs) > 0 {
		queued += " (" + NamesOf(l.IDs, l.Queued) + ")"
	}
	if f := l.InFlight; f != nil {
		queued += fmt.Sprintf(", entry %s was in flight", f.DeliveryID)
		if f.Source != "" {
			queued += " (" + f.Source + ")"
		}
	}
	return l.What + "; " + queued
}

// mostShown is how many ids a line names.
const mostShown = 5

// NamesOf is the beginning of a list of ids, of all in all.
func NamesOf(ids []string, all int) string {
	shown := ids[:min(mostShown, len(ids))]
	text := strings.Join(shown, ", ")
	if more := all - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Grounds returns the folders that a queue is in, and the agent's own.
func Grounds(dir, home, inbox string) []string {
	all := []string{dir, home, filepath.Dir(inbox)}
	return slices.Compact(all)
}

// StandOn records what is there now; the error says what is missing.
func StandOn(paths ...string) (Ground, error) {
	g := make(Ground, 0, len(paths))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		g = append(g, place{path, durable.IdentityOf(info)})
	}
	return g, nil
}

const (
	// groundEvery is how often the ground is checked, GroundPatience how long
	// something may be missing, for example during a rename there and back.
	groundEvery    = 500 * time.Millisecond
	GroundPatience = time.Second
	// countEvery is how often queued entries are counted when the queue changes.
	countEvery = 5 * time.Second
)

// look says what is gone for good, or "".
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

// Differs says what has changed, or "". What cannot be seen counts as unchanged.
func (g Ground) Differs() string { return g.DiffersFrom(nil) }

// DiffersFrom is Differs, where now is what is there; what it lacks is looked at.
func (g Ground) DiffersFrom(now Ground) string {
	for _, p := range g {
		what := ""
		if is, ok := now.Of(p.path); !ok {
			what = p.differs()
		} else if is != p.was {
			what = p.path + " is another one"
		}
		if what != "" {
			return what
		}
	}
	return ""
}

// Of is the folder or file of the ground at a path; false: the ground has none.
func (g Ground) Of(path string) (durable.Identity, bool) {
	for _, p := range g {
		if p.path == path {
			return p.was, true
		}
	}
	return durable.Identity{}, false
}

func (p place) differs() string {
	switch info, err := os.Lstat(p.path); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return p.path + " is gone"
	case err != nil:
		return ""
	case durable.IdentityOf(info) != p.was:
		return p.path + " is another one"
	}
	return ""
}

// count has counted how much is queued, where that may have changed.
func (g *ground) count(l *hook.Live, seen *sight, done int, now time.Time) {
	if d := l.Depth(); d != nil {
		g.census = census{d.Queued, d.More, d.Names}
	}
	if !g.counted.IsZero() && now.Sub(g.counted) < countEvery {
		return
	}
	g.counted = now
	if of := (countedOf{l.Heard(), seen.entry.work, done}); g.of != of || l.Depth() == nil {
		g.of = of
		l.Count()
	}
}
