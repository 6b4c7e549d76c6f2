// Package once has each order that a person gives by the page carried out once: a
// double tap, a reloaded page and a request that a proxy sends again get the first
// one's answer. What was ordered is kept in the state directory, synced before it is
// carried out, so that this holds over a restart.
package once

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heartbeat/orchestrator/state"
)

// Fresh is how long a form may be sent after it was drawn. What was ordered is
// remembered for longer than that.
const Fresh, remembered = 24 * time.Hour, 25 * time.Hour

// most is how many orders are remembered. With more than that in a day new ones are
// refused, rather than old ones forgotten.
const most = 5000

// Errors of orders.
var (
	ErrOld    = errors.New("the page was opened more than a day ago, or the clock was changed: load it again")
	ErrUnsure = errors.New("it was asked for already, and the scheduler has ended meanwhile: look before you ask again")
	ErrMany   = errors.New("too much was asked for in one day")
)

// Key returns a new key: each drawn form has one.
func Key(now time.Time) string { return strconv.FormatInt(now.Unix(), 36) + "-" + rand.Text() }

// drawn returns when a form with a key was drawn.
func drawn(key string) (time.Time, bool) {
	at, rest, ok := strings.Cut(key, "-")
	sec, err := strconv.ParseInt(at, 36, 64)
	return time.Unix(sec, 0), ok && err == nil && len(rest) >= 20 && len(key) <= 64
}

// Record is an order that was given.
type Record struct {
	Key string    `json:"key"` // with whose it is, and what was ordered
	At  time.Time `json:"at"`
	// Done is true once it was carried out, as Answer says, or, with Failed, was not.
	Done   bool   `json:"done,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	Answer string `json:"answer,omitempty"`
}

// Book remembers orders. Only one process may use the book of a state directory: the
// fleet's run.
type Book struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	known map[string]*Record // nil: not read yet
	busy  map[string]chan struct{}
}

// Open returns the book of a state directory; now is the clock, nil the system's.
func Open(stateDir string, now func() time.Time) *Book {
	if now == nil {
		now = time.Now
	}
	return &Book{path: filepath.Join(stateDir, "page", "orders.json"), now: now, busy: map[string]chan struct{}{}}
}

// Do carries an order out, unless it was carried out before, and returns what became
// of it. token is whose order it is, key its form's, what the order itself: one form
// may give several. again is true for an answer of before. The error is about orders
// that are not carried out.
func (b *Book) Do(ctx context.Context, token, key, what string, do func() (string, error)) (r Record, again bool, err error) {
	if at, ok := drawn(key); !ok || b.now().Sub(at).Abs() > Fresh {
		return r, false, ErrOld
	}
	name := token + " " + key + " " + what
	b.mu.Lock()
	for b.busy[name] != nil {
		wait := b.busy[name]
		b.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return r, true, context.Cause(ctx)
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		return r, false, err
	}
	if old := b.known[name]; old != nil {
		if !old.Done {
			return *old, true, ErrUnsure
		}
		return *old, true, nil
	}
	one := &Record{Key: name, At: b.now()}
	if err := b.begin(one); err != nil {
		return r, false, err
	}
	done := make(chan struct{})
	b.busy[name] = done
	defer func() {
		delete(b.busy, name)
		close(done)
	}()
	answer, failed := b.unlocked(do)
	if one.Done, one.Answer = true, answer; failed != nil {
		one.Failed, one.Answer = true, failed.Error()
	}
	_ = b.save() // else it is not known after a restart what became of it, but that it was asked for
	return *one, false, nil
}

// unlocked carries an order out while others may use the book, also where it panics:
// net/http goes on after that.
func (b *Book) unlocked(do func() (string, error)) (string, error) {
	b.mu.Unlock()
	defer b.mu.Lock()
	return do()
}

// begin writes an order down.
func (b *Book) begin(r *Record) error {
	for name, old := range b.known {
		if b.now().Sub(old.At).Abs() > remembered && b.busy[name] == nil {
			delete(b.known, name)
		}
	}
	if len(b.known) >= most {
		return ErrMany
	}
	b.known[r.Key] = r
	if err := b.save(); err != nil {
		delete(b.known, r.Key)
		return fmt.Errorf("it was not done, as it cannot be written down: %w", err)
	}
	return nil
}

func (b *Book) save() error {
	all := make([]*Record, 0, len(b.known))
	for _, r := range b.known {
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y *Record) int { return cmp.Or(x.At.Compare(y.At), strings.Compare(x.Key, y.Key)) })
	return state.Save(b.path, all)
}

func (b *Book) read() error {
	if b.known != nil {
		return nil
	}
	var all []*Record
	if err := state.Load(b.path, &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.known = map[string]*Record{}
	for _, r := range all {
		if r != nil {
			b.known[r.Key] = r
		}
	}
	return nil
}

// Last returns the last order of somebody's form that has an answer.
func (b *Book) Last(token, key string) (last Record, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, good := drawn(key); !good || b.read() != nil {
		return Record{}, false
	}
	for name, r := range b.known {
		if strings.HasPrefix(name, token+" "+key+" ") && r.Done && !r.At.Before(last.At) {
			last, ok = *r, true
		}
	}
	return last, ok
}
