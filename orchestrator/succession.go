package orchestrator

import (
	"context"
	"errors"
	"iter"
	"slices"

	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// An agent that a reload adds is in the list of agents from then on. While
// another one still has its name or its directory it is expected: it is
// declared, its triggers fire into its inbox, but nothing of it is started or
// shown. When the last of its predecessors is gone it takes over, recovers
// what is in flight in its directory, and is an agent like all others.

// expected reports whether others still have an agent's name or directory.
func (a *agent) expected() bool { return a.predecessors > 0 }

// shownLocked are the agents that there are: no two of one name.
func (s *Scheduler) shownLocked() iter.Seq[*agent] {
	return func(yield func(*agent) bool) {
		for _, a := range s.agents {
			if !a.expected() && !yield(a) {
				return
			}
		}
	}
}

// lockAddedLocked reads whether the agents that come are paused, and locks
// their directories, all or none, but for those that an agent of this run has:
// it hands its lock on.
func (s *Scheduler) lockAddedLocked(c *change) error {
	kept, err := readPauses(s.opt.StateDir)
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, a := range s.agents {
		ours[a.cfg.Dir] = true
	}
	var errs []error
	for _, a := range c.added {
		a.paused, a.pausedBy = kept.Since[a.key], kept.By[a.key]
		if ours[a.cfg.Dir] {
			continue
		}
		var err error
		if a.claim, err = claim.Take(a.cfg); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		for _, a := range c.added {
			a.release()
		}
	}
	return claim.Joined(errs)
}

// expectLocked makes agents ones of this run, and lets those take over that
// have no predecessor.
func (s *Scheduler) expectLocked(added []*agent) {
	byName, byDir := map[string][]*agent{}, map[string][]*agent{}
	for _, a := range s.agents {
		byName[a.name] = append(byName[a.name], a)
		byDir[a.cfg.Dir] = append(byDir[a.cfg.Dir], a)
	}
	for _, a := range added {
		for _, before := range slices.Concat(byName[a.name], byDir[a.cfg.Dir]) {
			if !slices.Contains(before.successors, a) {
				before.successors = append(before.successors, a)
				a.predecessors++
			}
		}
		s.agents = append(s.agents, a)
		if !a.expected() {
			s.takeOverLocked(a)
		}
	}
}

// succeedLocked hands on what an agent had that is gone.
func (s *Scheduler) succeedLocked(gone *agent) {
	for _, a := range gone.successors {
		if a.removed {
			continue
		}
		if a.cfg.Dir == gone.cfg.Dir && gone.claim != nil {
			a.claim, gone.claim = gone.claim, nil
		}
		if a.predecessors--; !a.expected() {
			s.takeOverLocked(a)
		}
	}
	gone.release()
}

// takeOverLocked recovers, in the background, what is in flight in the
// directory of an agent that comes.
func (s *Scheduler) takeOverLocked(a *agent) {
	if s.stopping {
		return
	}
	s.note(journal.Event{Agent: a.name, Kind: journal.Added})
	s.recoverLocked(a, "added by a reload")
}

// recoverLocked recovers what is in flight in an agent's directory. The agent
// is idle then, for the reason that is given.
func (s *Scheduler) recoverLocked(a *agent, reason string) {
	a.recovering = true
	s.followLocked(a, next{state: Idle, reason: "recovering"})
	s.publishLocked(a)
	cfg, o := a.cfg, a.owed
	if o == nil {
		last := session.LastOutcome(s.opt.StateDir, cfg.Name)
		o = &last
	}
	s.wg.Go(func() {
		select {
		case s.recoveries <- struct{}{}:
		case <-s.work.Done():
			return // the next run recovers it
		}
		err := errors.Join(s.furnish(cfg), s.recover(context.WithoutCancel(s.work), a, cfg, *o, dealing{}))
		<-s.recoveries
		s.recovered(a, reason, o, err)
	})
}

// recovered lets an agent begin that was recovered, or not.
func (s *Scheduler) recovered(a *agent, reason string, o *session.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.recovering = false
	if a.owed = nil; err != nil {
		a.owed = o
		s.failLocked(a, err)
	} else {
		s.followLocked(a, next{state: Idle, reason: reason})
	}
	if a.removed {
		s.vacatedLocked(a)
	}
	s.evaluateLocked(a)
	s.slotFreedLocked()
}
