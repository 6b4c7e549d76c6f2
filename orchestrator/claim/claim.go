// Package claim keeps one run's hold on an agent's directory: locked, checked,
// lost, replaced by another one, locked again. It returns what is there and says
// nothing about agents: the scheduler decides what follows.
package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/session"
)

// Claim is an agent's directory as this run has locked it. The lock prevents its
// inode from being reused, so another directory under the same path is recognised
// for certain. A nil Claim means that this run does not have the directory.
type Claim struct {
	unlock func() error
	dir    durable.Identity
}

// Take creates an AGENT_DIR if necessary and locks it: one directory, one consumer.
// The error is a *HeldError if another scheduler has it.
func Take(c *config.Agent) (*Claim, error) {
	// The workspace itself belongs to the person: it is created like any other
	// folder.
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot prepare agent %q: %w", c.Name, err)
	}
	return Lock(c)
}

// Lock is Take for a directory that exists.
func Lock(c *config.Agent) (*Claim, error) {
	unlock, err := flock.TryLockFolder(c.Dir)
	if errors.Is(err, flock.ErrHeld) {
		return nil, heldError(c)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the directory of agent %q: %w", c.Name, err)
	}
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot prepare agent %q: %w", c.Name, err), unlock())
	}
	return &Claim{unlock: unlock, dir: durable.IdentityOf(info)}, nil
}

// Lost is the claim to a directory that could not be locked and has to be looked
// for.
func Lost() *Claim { return &Claim{unlock: func() error { return nil }} }

// Release gives the directory back, once.
func (c *Claim) Release() {
	if c != nil && c.unlock != nil {
		_ = c.unlock()
		c.unlock = nil
	}
}

// Has reports whether the directory under an agent's path is the one that was
// locked.
func (c *Claim) Has(a *config.Agent) bool { return c.Look(a, nil).Same }

// Look is what a look at an agent's directory found.
type Look struct {
	// Missing says why the directory cannot be seen, or "".
	Missing string
	// Same is true if it is the one that was locked.
	Same bool
	// Differs says which of the queue's folders has changed, or "".
	Differs string
	// Folders are those of the queue as they are now; nil if one is missing.
	Folders session.Ground
}

// Look looks at an agent's directory and at the folders of its queue; folders are
// those that it saw last.
func (c *Claim) Look(a *config.Agent, were session.Ground) Look {
	if now := Folders(a); now != nil {
		is, _ := now.Of(a.Dir)
		return Look{Differs: were.DiffersFrom(now), Folders: now, Same: c != nil && is == c.dir}
	}
	l := Look{Differs: were.Differs()}
	switch info, err := os.Lstat(a.Dir); {
	case errors.Is(err, fs.ErrNotExist):
		l.Missing = a.Dir + " is not there; heartbeat apply " + a.Name + " makes it"
	case err != nil:
		l.Missing = err.Error()
	default:
		l.Same = c != nil && durable.IdentityOf(info) == c.dir
	}
	return l
}

// Folders returns the folders of an agent's queue as they are; nil if one of them
// is missing.
func Folders(a *config.Agent) session.Ground {
	g, err := session.StandOn(session.Grounds(a.Dir, a.Home, a.Inbox)...)
	if err != nil {
		return nil
	}
	return g
}
