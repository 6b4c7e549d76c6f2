// Package claim keeps one run's hold on an agent's directory: locked, checked,
// lost, replaced by another one, locked again. It returns what is there and says
// nothing about agents: the scheduler decides what follows.
package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/session"
)

// Locks are the directories that a run has locked. A directory that it has is its own
// wherever it is by now: it can be claimed again, by whoever finds it under its path, and
// stays locked until each claim to it is released. Who of them may use it is the caller's to
// decide (Same). The zero value has none.
type Locks struct {
	mu   sync.Mutex
	held map[durable.Identity]*lock
}

// lock is one locked directory, with the number of claims to it.
type lock struct {
	unlock func() error
	dir    durable.Identity
	claims int
}

// Claim is an agent's directory as this run has locked it. The lock prevents its
// inode from being reused, so another directory under the same path is recognised
// for certain. A nil Claim means that this run does not have the directory.
type Claim struct {
	of   *Locks
	lock *lock // nil: there is none, or it was released
}

// Take creates an AGENT_DIR if necessary and locks it: one directory, one consumer.
// The error is a *HeldError if another scheduler has it.
func (l *Locks) Take(c *config.Agent) (*Claim, error) {
	// The workspace itself belongs to the person: it is created like any other
	// folder.
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot prepare agent %q: %w", c.Name, err)
	}
	return l.Lock(c)
}

// Lock is Take for a directory that exists.
func (l *Locks) Lock(c *config.Agent) (*Claim, error) {
	if err := c.Exposed(); err != nil {
		return nil, fmt.Errorf("the directory of agent %q is not used: %w", c.Name, err)
	}
	if claim, err := l.again(c); claim != nil || err != nil {
		return claim, err
	}
	unlock, err := flock.TryLockFolder(c.Dir)
	if errors.Is(err, flock.ErrHeld) {
		if claim, _ := l.again(c); claim != nil { // it was locked here meanwhile
			return claim, nil
		}
		return nil, heldError(c)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the directory of agent %q: %w", c.Name, err)
	}
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot prepare agent %q: %w", c.Name, err), unlock())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[durable.Identity]*lock{}
	}
	one := &lock{unlock, durable.IdentityOf(info), 1}
	l.held[one.dir] = one
	return &Claim{l, one}, nil
}

// again is another claim to an agent's directory, if that is locked here; nil: it is not.
func (l *Locks) again(c *config.Agent) (*Claim, error) {
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the directory of agent %q: %w", c.Name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.held[durable.IdentityOf(info)]
	if one == nil {
		return nil, nil
	}
	one.claims++
	return &Claim{l, one}, nil
}

// Lost is the claim to a directory that could not be locked and has to be looked
// for.
func Lost() *Claim { return &Claim{} }

// Again is another claim to the same directory.
func (c *Claim) Again() *Claim {
	if c == nil || c.lock == nil {
		return Lost()
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.lock.claims++
	return &Claim{c.of, c.lock}
}

// Same reports whether two claims are to one directory.
func (c *Claim) Same(other *Claim) bool {
	return c != nil && other != nil && c.lock != nil && c.lock == other.lock
}

// Release gives the directory back, once: with the last claim to it, others can lock it.
func (c *Claim) Release() {
	if c == nil || c.lock == nil {
		return
	}
	one := c.lock
	c.lock = nil
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if one.claims--; one.claims == 0 {
		delete(c.of.held, one.dir)
		_ = one.unlock()
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
		return Look{Differs: were.DiffersFrom(now), Folders: now, Same: c.is(is)}
	}
	l := Look{Differs: were.Differs()}
	switch info, err := os.Lstat(a.Dir); {
	case errors.Is(err, fs.ErrNotExist):
		l.Missing = a.Dir + " is not there; heartbeat apply " + a.Name + " makes it"
	case err != nil:
		l.Missing = err.Error()
	default:
		l.Same = c.is(durable.IdentityOf(info))
	}
	return l
}

// is reports whether the claim is to a directory.
func (c *Claim) is(dir durable.Identity) bool { return c != nil && c.lock != nil && c.lock.dir == dir }

// Folders returns the folders of an agent's queue as they are; nil if one of them
// is missing.
func Folders(a *config.Agent) session.Ground {
	g, err := session.StandOn(session.Grounds(a.Dir, a.Home, a.Inbox)...)
	if err != nil {
		return nil
	}
	return g
}
