package memory

import (
	"context"
	"fmt"
	"sync"

	"heartbeat/orchestrator/store"
)

// Book is what the triggers of a fleet's agents remember, for the run that has the fleet. Any
// goroutine may call its methods.
type Book struct {
	store *store.Store

	mu     sync.Mutex
	agents map[string]*Agent // :: key
}

// NewBook returns a Book that remembers nothing until Recall.
func NewBook(s *store.Store) *Book {
	return &Book{store: s, agents: map[string]*Agent{}}
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

// SaveSoon lets the memory be written. The caller may hold a lock.
func (m *Agent) SaveSoon() {
	m.book.store.Owe(fmt.Sprintf("what the triggers of agent %q remember", m.key), m.Save)
}

// Save writes the memory, and returns when it is durable. No lock of readers is held while it
// waits: the store's writer takes that.
//
// One save runs at a time: another would count as stored what the first has not committed yet.
func (m *Agent) Save() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	err := m.book.store.Write(context.Background(), m.write)
	if err != nil {
		m.mu.Lock()
		m.stored = nil // nobody knows what is there
		m.mu.Unlock()
	}
	return err
}

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
