package memory

import (
	"path/filepath"
	"strings"

	"heartbeat/config"
)

// Move is an agent that the fleet's file has in another directory than the last run did.
type Move struct {
	From  string // the directory until now
	Agent *config.Agent
}

// Moves returns the agents of that kind, by their names. Who has their directories now does
// not matter.
func (all Identities) Moves(agents []*config.Agent) (moves []Move) {
	for _, a := range agents {
		if was := all.named(a); was != nil && was.Dir != a.Dir {
			moves = append(moves, Move{was.Dir, a})
		}
	}
	return moves
}

// named returns which of those with an agent's name it was: the one with its directory, or
// else the one that is declared, or else the one that went last.
func (all Identities) named(a *config.Agent) (was *Identity) {
	for i := range all {
		b := &all[i]
		switch {
		case b.Name != a.Name:
		case b.Dir == a.Dir:
			return b
		case was == nil || b.Gone.IsZero() && !was.Gone.IsZero():
			was = b
		}
	}
	return was
}

// Owns returns the agent's directory that a path is in; "" for none. Of one within another
// it is the inner one.
func (all Identities) Owns(path string) (dir string) {
	for _, i := range all {
		if len(i.Dir) > len(dir) && strings.HasPrefix(path, i.Dir+string(filepath.Separator)) {
			dir = i.Dir
		}
	}
	return dir
}
