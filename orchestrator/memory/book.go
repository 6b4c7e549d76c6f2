package memory

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"heartbeat/orchestrator/store"
)

// Book is what the triggers of a fleet's agents remember, for the run that has the fleet. Any
// goroutine may call its methods.
type Book struct {
	store *store.Store
	log   *slog.Logger
	delay time.Duration // from SaveSoon to the write, so that several become one
	asked chan struct{}

	mu     sync.Mutex
	agents map[string]*Agent // :: key
	behind map[*Agent]bool   // are to be written
}

// NewBook returns a Book that remembers nothing until Recall. What is to be saved soon is
// written after a delay.
func NewBook(s *store.Store, delay time.Duration, log *slog.Logger) *Book {
	return &Book{store: s, log: log, delay: delay, asked: make(chan struct{}, 1), agents: map[string]*Agent{}, behind: map[*Agent]bool{}}
}

// Recall reads what triggers remember from the runs before.
func (b *Book) Recall(ctx context.Context) error {
	all, err := store.Get(ctx, b.store.Reader, func(v *store.View) (map[string]*Agent, error) { return read(v, "", false) })
	if err != nil {
		return fmt.Errorf("cannot read what triggers have fired: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range all {
		m.book = b
	}
	b.agents = all
	return nil
}

// Of returns what the triggers of the agent with a key remember.
func (b *Book) Of(key string) *Agent {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.agents[key] == nil {
		b.agents[key] = newAgent(key)
		b.agents[key].book = b
	}
	return b.agents[key]
}

// Run writes what is to be saved soon until ctx ends, and then what is left.
func (b *Book) Run(ctx context.Context) {
	defer b.flush()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.asked:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(b.delay):
		}
		b.flush()
	}
}

// atOnce is how many agents' memories are written in one change: as long as it lasts, others
// wait.
const atOnce = 100

// flush writes what is to be written. What cannot be is tried again with the next that is to
// be saved, and at the end.
func (b *Book) flush() {
	var failed []*Agent
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, m := range failed {
			b.behind[m] = true
		}
	}()
	for {
		var some []*Agent
		b.mu.Lock()
		for m := range b.behind {
			if some = append(some, m); len(some) == atOnce {
				break
			}
		}
		for _, m := range some {
			delete(b.behind, m)
		}
		b.mu.Unlock()
		if len(some) == 0 {
			return
		}
		if err := b.save(some...); err != nil {
			b.log.Warn("cannot keep what triggers remember", "agents", len(some), "err", err)
			failed = append(failed, some...)
		}
	}
}

// save writes what agents' triggers remember, and returns when it is durable. No lock of theirs
// is held while it waits: the store's writer takes it.
//
// Of one agent's saves one runs at a time: another would count as stored what the first has
// not committed yet.
func (b *Book) save(some ...*Agent) error {
	slices.SortFunc(some, func(x, y *Agent) int { return cmp.Compare(x.key, y.key) }) // all lock in this order
	for _, m := range some {
		m.saving.Lock()
		defer m.saving.Unlock()
	}
	err := b.store.Write(context.Background(), func(c *store.Change) error {
		for _, m := range some {
			if err := m.write(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for _, m := range some {
			m.mu.Lock()
			m.stored = nil // nobody knows what is there
			m.mu.Unlock()
		}
	}
	return err
}

// SaveSoon lets the memory be written. The caller may hold a lock.
func (m *Agent) SaveSoon() {
	b := m.book
	b.mu.Lock()
	b.behind[m] = true
	b.mu.Unlock()
	select {
	case b.asked <- struct{}{}:
	default:
	}
}

// Save saves the memory.
func (m *Agent) Save() error { return m.book.save(m) }

// change changes the memory and saves it.
func (m *Agent) change(f func()) error {
	m.mu.Lock()
	f()
	m.mu.Unlock()
	return m.Save()
}

// Adopt keeps what an earlier version has kept of the triggers of the agent with a key.
func Adopt(c *store.Change, key string, all []*Memo, used map[string]int) error {
	m := newAgent(key)
	m.stored, m.data = nil, remembered{all, used}
	return m.write(c)
}

// Remembered returns what Adopt would keep to have the present memory of all agents' triggers,
// by the agents' keys.
func Remembered(v *store.View) (all map[string][]*Memo, used map[string]map[string]int, err error) {
	agents, err := read(v, "", false)
	all, used = map[string][]*Memo{}, map[string]map[string]int{}
	for key, m := range agents {
		all[key], used[key] = m.data.Triggers, m.data.Used
	}
	return all, used, err
}

// NewKey returns a key for a trigger of that name, of whose names used counts the keys.
func NewKey(used map[string]int, name string) string { return (&remembered{Used: used}).newKey(name) }
