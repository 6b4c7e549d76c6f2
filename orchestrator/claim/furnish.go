package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"heartbeat/config"
	"heartbeat/hook/durable"
)

// IgnoreFile is in .heartbeat and keeps all of it out of git; Ignored is its
// content.
const IgnoreFile, Ignored = ".gitignore", "*\n"

// furnished reports whether an agent's directory contains something of ours.
func furnished(a *config.Agent) bool {
	_, err := os.Lstat(a.Home)
	return !errors.Is(err, fs.ErrNotExist)
}

// MakeHome creates .heartbeat, which git ignores as a whole, in an agent's
// directory that has none. It does not create the directory: whoever creates that
// again may want it empty.
func MakeHome(c *config.Agent) error {
	home, err := durable.OpenBelow(c.Dir, c.Home)
	if err == nil {
		return home.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		if home, err = durable.MakeBelow(c.Dir, c.Home); err == nil {
			err = errors.Join(home.Replace(IgnoreFile, []byte(Ignored)), home.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make the queue's folder of agent %q: %w", c.Name, err)
	}
	return nil
}

// Furnish wires an agent's directory that contains nothing of ours yet, and creates
// the folder of its queue. So what cannot be wired shows now, and not with the
// first prompt; what has drifted is wired before each session.
func Furnish(a *config.Agent, wire func() error) error {
	if furnished(a) {
		return nil
	}
	err := wire()
	if unmade := MakeHome(a); err == nil {
		return unmade
	}
	return err
}
