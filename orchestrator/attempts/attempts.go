// Package attempts keeps what a fleet runs beside its sessions (checks, polls, gates, probes,
// commands of notify) from ending its scheduler again and again. It notes each run before it
// begins and removes the note when it is over: a note that a starting scheduler finds is of
// one during which the last scheduler was killed. Such a run is made again later each time,
// alone of its kind, and in the end not any more.
//
// What is not promised: that it was the one. Of what ran at the same time each is noted; as
// all but the first attempt are made one after the other, the others are soon cleared. Where
// the disk takes no note, the run is made all the same: what it does may be to say so.
package attempts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/state"
)

// Kind is what is run.
type Kind string

// The kinds.
const (
	Check  Kind = "check"
	Poll   Kind = "poll"
	Gate   Kind = "gate"
	Probe  Kind = "probe"
	Notify Kind = "notify command"
)

// Work is something that is run again and again.
type Work struct {
	Kind Kind `json:"kind"`
	// Agent is the agent that it belongs to, or ""; Name tells it from others of its kind, for people.
	Agent string `json:"agent,omitempty"`
	Name  string `json:"name,omitempty"`
	// Definition is what it does: with another one it is another work.
	Definition string `json:"-"`
	// ByHand: a person asks for it, and decides.
	ByHand bool `json:"-"`
}

// String names it.
func (w Work) String() string {
	text := string(w.Kind)
	if w.Name != "" {
		text += " " + w.Name
	}
	if w.Agent != "" {
		text += " of agent " + w.Agent
	}
	return text
}

// Note is what is known of work that has ended its scheduler, or runs.
type Note struct {
	Work
	// Times is how often in a row, Last when it began at last.
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}

// Next says when it may be run again; ever is false once it may not.
func (n Note) Next(now time.Time) (at time.Time, ever bool) { return next(n.Times, n.Last, now) }

// HeldError means that work is not run now.
type HeldError struct {
	Note
	// Until is when it may be; zero: not any more.
	Until time.Time
}

// Error says how often it has ended its scheduler, and what follows.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("the scheduler was killed %d times in a row while it ran", e.Times)
	if e.Until.IsZero() {
		return text + ": it is not run any more (" + e.Hint() + ")"
	}
	return text + ": it is not run again before " + e.Until.Format("15:04:05 MST")
}

// Hint says what to do.
func (e *HeldError) Hint() string {
	if e.Agent == "" {
		return "change its command"
	}
	return "change its command, or heartbeat resume " + e.Agent + " tries it again"
}

// Book is what is noted in a state directory. A nil Book notes nothing.
type Book struct {
	dir string

	mu      sync.Mutex
	running map[string]int // :: path of a note → how often its work runs now
}

func folderOf(stateDir string) string { return filepath.Join(stateDir, "attempts") }

// Of returns a Book of a state directory; there may be several. Without one it is nil.
func Of(stateDir string) *Book {
	if stateDir == "" {
		return nil
	}
	return &Book{dir: folderOf(stateDir), running: map[string]int{}}
}

func (b *Book) path(w Work) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", w.Kind, w.Agent, w.Name, w.Definition))
	return filepath.Join(b.dir, hex.EncodeToString(sum[:12])+".json")
}

// Run does work, noted before it begins, or returns a *HeldError. What ends because ctx is
// cancelled leaves what was known before.
func Run[T any](ctx context.Context, b *Book, w Work, do func() (T, error)) (T, error) {
	end, err := b.begin(ctx, w)
	if err != nil {
		var none T
		return none, err
	}
	defer func() { end(errors.Is(ctx.Err(), context.Canceled)) }()
	return do()
}

func (b *Book) begin(ctx context.Context, w Work) (end func(cancelled bool), err error) {
	if b == nil {
		return func(bool) {}, nil
	}
	path := b.path(w)
	was, known := b.known(path)
	alone := func() error { return nil }
	if known {
		now := time.Now()
		if was.Last.After(now) { // by a clock that was ahead: its delay begins now, and once
			was.Last = now
			_ = state.Save(path, was)
		}
		if at, ever := was.Next(now); !w.ByHand && (!ever || !deadline.Over(at, now)) {
			return nil, &HeldError{was, at}
		}
		if unlock, err := flock.Lock(ctx, filepath.Join(b.dir, ".alone")); err == nil {
			alone = unlock
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[path]++; b.running[path] == 1 {
		_ = state.Save(path, Note{w, was.Times + 1, time.Now()}) // it is run all the same
	}
	return func(cancelled bool) {
		defer func() { _ = alone() }()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.running[path]--; b.running[path] > 0 {
			return
		}
		delete(b.running, path)
		if cancelled && known {
			_ = state.Save(path, was)
			return
		}
		_ = os.Remove(path)
	}, nil
}

// known returns the note of an earlier scheduler's work, if there is one.
func (b *Book) known(path string) (n Note, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[path] > 0 {
		return Note{}, false // it is this scheduler's own
	}
	return n, state.Load(path, &n) == nil
}

// All returns what is noted: what has ended its scheduler, and what runs.
func All(stateDir string) (all []Note, err error) {
	err = each(stateDir, func(_ string, n Note) error {
		all = append(all, n)
		return nil
	})
	slices.SortFunc(all, func(a, b Note) int { return cmp.Or(b.Times-a.Times, strings.Compare(a.String(), b.String())) })
	return all, err
}

// Forget has the work of agents tried again at once.
func Forget(stateDir string, agents ...string) error {
	return each(stateDir, func(path string, n Note) error {
		if !slices.Contains(agents, n.Agent) {
			return nil
		}
		return os.Remove(path)
	})
}

// mostAge is how long a note is kept: what it is about is not declared any more.
const mostAge = 90 * 24 * time.Hour

func each(stateDir string, do func(path string, n Note) error) error {
	entries, err := os.ReadDir(folderOf(stateDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot tell what has ended its scheduler: %w", err)
	}
	for _, e := range entries {
		path, n := filepath.Join(folderOf(stateDir), e.Name()), Note{}
		if strings.HasPrefix(e.Name(), ".") || state.Load(path, &n) != nil {
			continue // it is being written, was removed meanwhile, or says nothing
		}
		if time.Since(n.Last) > mostAge {
			_ = os.Remove(path)
			continue
		}
		if err := do(path, n); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot forget an attempt: %w", err)
		}
	}
	return nil
}
