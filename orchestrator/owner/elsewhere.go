package owner

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"heartbeat/config"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/store"
)

// Elsewhere is that directories of agents name another store than their fleet's, or another
// agent.
type Elsewhere struct {
	Origin          // what they name
	Agents []string // whose directories
	// Copied is the other agent; "": it is another store.
	Copied string

	exists bool // the other store
	twin   bool // it is a copy of the fleet's, or that is a copy of it
	now    Origin
}

// Compare returns the agents of a fleet whose directories are those of another store, or of
// another one of its agents. now is the fleet's: without a store it has none yet. State that
// was left behind is LeftBehind's to tell.
func Compare(agents []*config.Agent, now Origin, known memory.Identities) (all []Elsewhere) {
	index := map[Origin]int{}
	for _, a := range agents {
		o := OriginOf(a)
		e := Elsewhere{Origin: o, now: now}
		switch {
		case o.Store == "":
			continue
		case o.Store == now.Store && o.StateDir != now.StateDir && !sameFile(o.StateDir, now.StateDir) && isThere(o, now):
			e.Agent, e.twin = "", true
		case o.Store == now.Store:
			if e.Copied = copied(a, agents, known, o.Agent); e.Copied == "" {
				continue
			}
		case o.leftBehind(now, a.Name):
			continue
		default:
			e.Agent = ""
		}
		i, seen := index[e.Origin]
		if !seen {
			e.exists = e.Copied == "" && isThere(o, now)
			i = len(all)
			index[e.Origin], all = i, append(all, e)
		}
		all[i].Agents = append(all[i].Agents, a.Name)
	}
	return all
}

// copied returns the agent whose directory an agent's one says to be, if that is another one
// that has another directory.
func copied(a *config.Agent, agents []*config.Agent, known memory.Identities, key string) string {
	for _, i := range known {
		if i.Key != key || !i.Gone.IsZero() || i.Name == a.Name || i.Dir == a.Dir {
			continue
		}
		if slices.ContainsFunc(agents, func(other *config.Agent) bool { return other.Dir == i.Dir }) {
			return i.Name
		}
	}
	return ""
}

// isThere reports whether the store that a directory names exists. Only one beside this fleet's
// is opened: what stands elsewhere may have been put there by an agent.
func isThere(o, now Origin) bool {
	if o.StateDir != now.StateDir && !slices.Contains(state.Beside(now.StateDir), o.StateDir) {
		return filepath.IsAbs(o.StateDir) && store.Exists(o.StateDir)
	}
	id, err := store.ID(context.Background(), o.StateDir)
	return err == nil && id == o.Store
}

// String says which store, or agent, it is.
func (e Elsewhere) String() string {
	who := "agent " + e.Agents[0]
	if n := len(e.Agents); n > 1 {
		who = fmt.Sprintf("%d agents (%s, …)", n, e.Agents[0])
	}
	if e.Copied != "" {
		return fmt.Sprintf("the directory of %s is a copy of that of agent %s: what waited in that one's queue may wait in both", who, e.Copied)
	}
	was := "was"
	if len(e.Agents) > 1 {
		was = "were"
	}
	text := fmt.Sprintf("%s %s run with ", who, was)
	switch {
	case e.twin:
		return text + fmt.Sprintf("a copy of the fleet's store, or that is one: that in %q; what was paused, spent and fired with one of the two, the other, in %q, does not know", e.StateDir, e.now.StateDir)
	case e.exists:
		return text + fmt.Sprintf("another store: that in %q, of the fleet %q; this fleet has its own in %q, which knows nothing of their pauses, budgets and fires", e.StateDir, e.File, e.now.StateDir)
	case e.StateDir == e.now.StateDir:
		return text + fmt.Sprintf("a store that is not in %q any more: the fleet knows nothing of their pauses, budgets and fires", e.StateDir)
	}
	return text + fmt.Sprintf("a store that cannot be found: that in %q, of the fleet %q; this fleet has its own in %q, which knows nothing of their pauses, budgets and fires", e.StateDir, e.File, e.now.StateDir)
}

// Advice says what to do about it.
func (e Elsewhere) Advice() string {
	switch {
	case e.Copied != "":
		return "heartbeat inbox " + e.Agents[0] + " shows what waits; the next run makes the directory its own"
	case e.twin:
		return "use one state directory for all commands of the fleet (HEARTBEAT_STATE_DIR), and move the other one away; the next run of this one goes on without it"
	case e.exists:
		return "use one state directory for all commands of the fleet (HEARTBEAT_STATE_DIR; cron and sudo may have another one), or give each fleet directories of its own; the next run of this one makes them its own"
	}
	return "put that state directory back, or restore a backup of its store; the next run of this fleet goes on without it"
}
