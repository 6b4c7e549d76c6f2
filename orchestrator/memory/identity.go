package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/store"
)

// Identity is what identifies an agent from one run to the next.
type Identity struct {
	Name string
	Dir  string // AGENT_DIR, resolved
	// Key names what is kept of the agent, permanently: it is the agent's first
	// name, unless another agent had that.
	Key string
	// Triggers is the hash of the agent's triggers when they last ran, or "".
	Triggers string
	// Gone is since when the agent is no longer declared, or zero.
	Gone time.Time
	// comes is true if the agent was gone before.
	comes bool
}

// Comes reports whether the agent is declared again after a while.
func (i Identity) Comes() bool { return i.comes }

// Identities are those of a fleet's agents, declared and gone.
type Identities []Identity

// maxGone limits how many agents that are gone are remembered.
const maxGone = 1000

// Read returns the identities that a fleet's store has: the declared agents, then those that
// are gone, the last of them first.
func Read(v *store.View) (all Identities, err error) {
	err = v.Each(`SELECT agent, name, dir, triggers, gone FROM agents ORDER BY gone > 0, gone DESC, agent`, nil, func(scan store.Scan) error {
		var i Identity
		var gone int64
		err := scan(&i.Key, &i.Name, &i.Dir, &i.Triggers, &gone)
		i.Gone = store.Time(gone)
		all = append(all, i)
		return err
	})
	return all, err
}

// ReadIn is Read for the store in a state directory. A fleet without one has no identities.
func ReadIn(stateDir string) (Identities, error) {
	return store.Ask(context.Background(), stateDir, Read)
}

// Keep keeps an identity, in place of what was known of its key.
func Keep(c *store.Change, i Identity) error {
	_, err := c.Do(`INSERT INTO agents (agent, name, dir, triggers, gone) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (agent) DO UPDATE SET name = excluded.name, dir = excluded.dir, triggers = excluded.triggers, gone = excluded.gone`,
		i.Key, i.Name, i.Dir, i.Triggers, store.Millis(i.Gone))
	return err
}

// Note follows a fleet's agents and keeps their identities. ran are those whose triggers run
// as they are declared now. The fleet's state is in stateDir.
func Note(c *store.Change, stateDir string, agents, ran []*config.Agent, now time.Time) (Identities, error) {
	before, err := Read(&c.View)
	if err != nil {
		return nil, fmt.Errorf("cannot tell which agents these are: %w", err)
	}
	next := before.Follow(agents, now)
	runs := map[string]bool{}
	for _, a := range ran {
		runs[a.Name] = true
	}
	for i, a := range agents { // in this order
		if runs[a.Name] {
			next[i].Triggers = hashOfAll(a.Triggers)
		}
	}
	left := make(map[string]Identity, len(before))
	for _, i := range before {
		left[i.Key] = i
	}
	for _, i := range next {
		was, known := left[i.Key]
		delete(left, i.Key)
		was.comes = i.comes
		if known && was == i {
			continue
		}
		if err := Keep(c, i); err != nil {
			return nil, fmt.Errorf("cannot keep who the agents are: %w", err)
		}
	}
	for _, i := range left {
		if err := forget(c, stateDir, i.Key); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// forget removes all that is kept of an agent that is no longer remembered: another agent with
// its key would take it for its own. One whose ledger cannot be removed is tried again.
func forget(c *store.Change, stateDir, key string) error {
	if ledger.Forget(stateDir, key) != nil {
		return nil
	}
	if err := forgetTriggers(c, key); err != nil {
		return err
	}
	for _, statement := range []string{`DELETE FROM agents WHERE agent = $1`, `DELETE FROM pauses WHERE agent = $1`, `DELETE FROM holds WHERE agent = $1`, `DELETE FROM conversations WHERE agent = $1`, `DELETE FROM stop_hooks WHERE agent = $1`} {
		if _, err := c.Do(statement, key); err != nil {
			return fmt.Errorf("cannot forget agent %q, which is gone: %w", key, err)
		}
	}
	return nil
}

// Declared returns the identities of the declared agents, by name.
func (all Identities) Declared() map[string]Identity {
	byName := make(map[string]Identity, len(all))
	for _, i := range all {
		if i.Gone.IsZero() {
			byName[i.Name] = i
		}
	}
	return byName
}

// Follow returns the identities of agents that are declared now, in their order,
// followed by those of agents that are gone: an agent is the one that had its
// directory, or else the one that had its name and whose directory no other agent
// has, or else new.
func (all Identities) Follow(agents []*config.Agent, now time.Time) Identities {
	f := heirs{before: all, taken: make([]bool, len(all)), byDir: map[string][]int{}, byName: map[string][]int{}, keys: map[string]bool{}}
	for i, b := range all {
		f.byDir[b.Dir], f.byName[b.Name] = append(f.byDir[b.Dir], i), append(f.byName[b.Name], i)
		f.keys[b.Key] = true
	}
	next := make(Identities, len(agents))
	for i, a := range agents {
		next[i] = Identity{Name: a.Name, Dir: a.Dir}
		f.inherit(&next[i], f.byDir[a.Dir], func(b Identity) bool { return b.Name == a.Name })
	}
	for i, a := range agents {
		if next[i].Key == "" {
			f.inherit(&next[i], f.byName[a.Name], func(Identity) bool { return true })
		}
	}
	for i, a := range agents {
		for n := 1; next[i].Key == ""; n++ {
			if key := keyOf(a.Name, n); !f.keys[key] {
				next[i].Key, f.keys[key] = key, true
			}
		}
	}
	return append(next, f.gone(now)...)
}

// heirs say which agent is which earlier one.
type heirs struct {
	before        Identities
	taken         []bool
	byDir, byName map[string][]int
	keys          map[string]bool
}

// inherit makes an agent one of the candidates: the preferred one, or else a
// declared one, or else one that is gone.
func (f *heirs) inherit(next *Identity, candidates []int, prefer func(Identity) bool) {
	best, rank := -1, 0
	for _, i := range candidates {
		if f.taken[i] {
			continue
		}
		r := 1
		if f.before[i].Gone.IsZero() {
			r += 2
		}
		if prefer(f.before[i]) {
			r++
		}
		if r > rank {
			best, rank = i, r
		}
	}
	if best < 0 {
		return
	}
	b := f.before[best]
	f.taken[best] = true
	next.Key, next.Triggers, next.comes = b.Key, b.Triggers, !b.Gone.IsZero()
}

// gone returns the earlier agents that are no longer declared.
func (f *heirs) gone(now time.Time) Identities {
	var gone Identities
	for i, b := range f.before {
		if f.taken[i] {
			continue
		}
		if b.Gone.IsZero() {
			b.Gone = now
		}
		gone = append(gone, b)
	}
	slices.SortStableFunc(gone, func(a, b Identity) int { return b.Gone.Compare(a.Gone) })
	return gone[:min(len(gone), maxGone)]
}

// Preview returns the triggers that will start over when a fleet is run as it is
// declared now. It changes nothing.
func Preview(stateDir string, agents []*config.Agent, now time.Time) ([]Anew, error) {
	return store.Ask(context.Background(), stateDir, func(v *store.View) (anew []Anew, err error) {
		all, err := Read(v)
		if err != nil {
			return nil, err
		}
		next := all.Follow(agents, now)
		for i, a := range agents {
			if next[i].Triggers == "" || next[i].Triggers == hashOfAll(a.Triggers) {
				continue
			}
			m, err := read(v, next[i].Key, false)
			if err != nil {
				return nil, err
			}
			_, more := m[next[i].Key].data.follow(a, next[i].comes, now)
			anew = append(anew, more...)
		}
		return anew, nil
	})
}
