package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/state"
)

// Identity is what identifies an agent from one run to the next.
type Identity struct {
	Name string `json:"name"`
	Dir  string `json:"dir"` // AGENT_DIR, resolved
	// Key names what is kept of the agent, permanently: it is the agent's first
	// name, unless another agent had that.
	Key string `json:"key"`
	// Triggers is the hash of the agent's triggers when they last ran.
	Triggers string `json:"triggers,omitempty"`
	// Gone is since when the agent is no longer declared, or zero.
	Gone time.Time `json:"gone,omitzero"`
	// comes is true if the agent was gone before.
	comes bool
}

// Comes reports whether the agent is declared again after a while.
func (i Identity) Comes() bool { return i.comes }

// Identities are those of a fleet's agents, declared and gone.
type Identities []Identity

// maxGone limits how many agents that are gone are remembered.
const maxGone = 1000

func identitiesPath(stateDir string) string { return filepath.Join(stateDir, "identities.json") }

// Read returns the identities that a run has recorded. The error for a damaged file
// is state.ErrDamaged.
func Read(stateDir string) (Identities, error) {
	var kept struct{ Agents Identities }
	err := state.Load(identitiesPath(stateDir), &kept)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return kept.Agents, err
}

// Note follows a fleet's agents and keeps their identities. ran are those whose
// triggers run as they are declared now. Damaged identities are put aside: then
// each agent is identified by its name.
func Note(stateDir string, agents, ran []*config.Agent, now time.Time) (Identities, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, err := flock.Lock(ctx, filepath.Join(stateDir, ".identities-lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot tell which agents these are: %w", err)
	}
	defer func() { _ = unlock() }()
	before, err := Read(stateDir)
	if errors.Is(err, state.ErrDamaged) {
		path := identitiesPath(stateDir)
		before, err = nil, os.Rename(path, path+".damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot tell which agents these are: %w", err)
	}
	next := before.Follow(agents, now)
	next = append(next, before.forget(next, stateDir)...)
	runs := map[string]bool{}
	for _, a := range ran {
		runs[a.Name] = true
	}
	for i, a := range agents { // in this order
		if runs[a.Name] {
			next[i].Triggers = hashOfAll(a.Triggers)
		}
	}
	if slices.Equal(before, next) {
		return next, nil
	}
	return next, state.Save(identitiesPath(stateDir), struct{ Agents Identities }{next})
}

// forget removes the ledgers of agents that are no longer remembered, and returns the agents whose
// ledgers cannot be removed, to try them again.
func (all Identities) forget(next Identities, stateDir string) (left Identities) {
	kept := make(map[string]bool, len(next))
	for _, i := range next {
		kept[i.Key] = true
	}
	for _, i := range all {
		if !kept[i.Key] && ledger.Forget(stateDir, i.Key) != nil {
			left = append(left, i)
		}
	}
	return left
}

// lockWait is how long Note waits for another run of the fleet.
const lockWait = 5 * time.Second

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
	all, err := Read(stateDir)
	if err != nil {
		return nil, err
	}
	var anew []Anew
	next := all.Follow(agents, now)
	for i, a := range agents {
		if next[i].Triggers == "" || next[i].Triggers == hashOfAll(a.Triggers) {
			continue
		}
		m, err := Open(stateDir, next[i].Key)
		if err != nil {
			continue // a run reports it
		}
		_, more := m.data.follow(a, next[i].comes, now)
		anew = append(anew, more...)
	}
	return anew, nil
}
