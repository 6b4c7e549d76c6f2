package ptyrun

import (
	"math"
	"os"
	"sync"
)

// kin is what earlier looks found out about a tree.
type kin struct {
	root     identity
	seen     map[identity]bool
	sessions map[int]bool // process sessions that the tree has created
}

func newKin(root process) kin {
	return kin{
		root: root.identity, seen: map[identity]bool{root.identity: true},
		sessions: map[int]bool{root.pid: true},
	}
}

// find returns the living processes of the child's tree.
func (c *Child) find() ([]process, error) {
	procs, err := snapshot()
	if err != nil {
		return nil, err
	}
	// This is read after the processes, so that a child that os/exec has just
	// started is known.
	owned := ownChildren()
	inGroup := groupMembers(c.group)
	other := otherSince(procs, owned, c)
	self, mySession := os.Getpid(), session(procs, os.Getpid())
	found := closure(procs, self, func(p process) bool {
		if p.start < c.start {
			return false
		}
		if inGroup[p.pid] || c.kin.seen[p.identity] || c.kin.sessions[p.sid] {
			return true
		}
		if owned[p.pid] {
			return false
		}
		if env := environ(p.pid); inTree(env, c.tree) || inSession(env, c.cookie) {
			return true
		}
		// An orphan that we adopted descends from one of our children, whatever its
		// environment says.
		return p.ppid == self && p.sid != mySession && p.start < other && !children.maybeOf(p, c)
	})
	for _, p := range found {
		c.kin.seen[p.identity] = true
		c.kin.sessions[p.sid] = true
	}
	delete(c.kin.sessions, mySession)
	return found, nil
}

// otherSince is since when another child lives than c, as os/exec starts them: orphans
// may be its since then, and are left to whoever ends that one.
func otherSince(procs []process, owned map[int]bool, c *Child) uint64 {
	oldest := uint64(math.MaxUint64)
	for _, p := range procs {
		if owned[p.pid] && p.pid != c.PID() && !p.zombie {
			oldest = min(oldest, p.start)
		}
	}
	return oldest
}

func session(procs []process, pid int) int {
	for _, p := range procs {
		if p.pid == pid {
			return p.sid
		}
	}
	return -1
}

// registry holds the children that have not been ended.
type registry struct {
	mu   sync.Mutex
	live map[*Child]bool
	stop func() // ends the reaper, which runs while there are children
}

var children = registry{live: map[*Child]bool{}}

// start starts and registers a child in one step, so that it is never taken for an
// orphan in between.
func (r *registry) start(c *Child, group string, limits Limits) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.live) == 0 {
		r.stop = startReaper()
	}
	r.live[c] = true
	if err := c.startIn(group, limits); err != nil {
		r.removeLocked(c)
		return err
	}
	// It has not been waited for, so its entry exists even when it has exited.
	p, _ := readProcess(c.cmd.Process.Pid)
	c.start, c.kin = p.start, newKin(p)
	return nil
}

func (r *registry) remove(c *Child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeLocked(c)
}

func (r *registry) removeLocked(c *Child) {
	delete(r.live, c)
	if len(r.live) == 0 {
		r.stop()
	}
}

// maybeOf reports whether an orphan may belong to another child than c. If so, it
// is left to the last of them.
func (r *registry) maybeOf(p process, c *Child) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := range r.live {
		if o != c && o.start <= p.start {
			return true
		}
	}
	return false
}

// pids returns those of the children that have not exited.
func (r *registry) pids() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pids := map[int]bool{}
	for c := range r.live {
		if c.running() {
			pids[c.PID()] = true
		}
	}
	return pids
}
