package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
)

// Reload runs another version of the fleet's file from now on. Agents whose
// definition is the same are not touched. Removed ones, and those that moved to
// another directory, end after their turn. The triggers of changed ones are
// replaced at once; the rest of their definition is in force from their next
// session on, for which a persist session makes way after its turn. An error means
// that nothing has changed.
func (s *Scheduler) Reload(file *config.Fleet) (*Plan, error) {
	defer s.tell()
	s.changing.Lock()
	defer s.changing.Unlock()
	c, err := s.change(file)
	if err != nil {
		s.ReloadFailed(err)
		return nil, err
	}
	if _, err := s.keepIdentities(file); err != nil {
		s.log.Warn("cannot keep who the agents are", "err", err)
	}
	for _, m := range c.removed {
		m.triggers.Stop()
	}
	for _, m := range slices.Concat(c.changed, c.added) {
		c.plan.Anew = append(c.plan.Anew, m.triggers.Set(s.work, c.wanted[m.Name])...)
		s.queues.look(m)
	}
	s.consent.LookIfOpen(s.work)
	s.queues.watch()
	s.wg.Go(func() { s.foresight.foresee(slices.Concat(c.changed, c.added)) })
	return c.plan, nil
}

// Compare returns what Reload would change, apart from triggers that would start over.
func (s *Scheduler) Compare(file *config.Fleet) *Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.compare(file, chosen(file, s.opt.Only), s.opt.Now()).plan
}

// ReloadFailed records that a new version of the fleet's file cannot be used.
func (s *Scheduler) ReloadFailed(err error) {
	s.records.note(journal.Event{Kind: journal.ReloadFailed, Reason: foreign.Text(err.Error())})
	s.log.Error("the new configuration is not used; the old one stays", "err", err)
}

// change carries out what a new version of the file means for the agents, all of it
// or nothing.
func (s *Scheduler) change(file *config.Fleet) (c *change, err error) {
	wanted := chosen(file, s.opt.Only)
	s.mu.Lock()
	err = s.fleet.reloadable(file, len(wanted))
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	known, err := store.Get(context.Background(), s.opt.Store.Reader, memory.Read)
	if err != nil {
		return nil, err
	}
	pauses, err := store.Get(context.Background(), s.opt.Store.Reader, memory.ReadPauses)
	if err != nil {
		return nil, err
	}
	s.takeAlong(context.Background(), known, file.Agents)
	who := known.Follow(file.Agents, s.opt.Now()).Declared()
	s.happened(nil, func(now time.Time) {
		f := &s.fleet
		c = f.compare(file, wanted, now)
		names := f.names()
		for _, m := range c.added {
			s.is(m, who[m.Name])
			if was := names[m.key]; was != "" && was != m.Name {
				f.spending.Rename(was, m.Name)
			}
			m.WasPaused(pauses.Of(m.key, now))
		}
		lost, failed := f.takeAdded(c)
		if err = failed; err != nil {
			return
		}
		s.records.note(journal.Event{Kind: journal.Reloaded, Detail: foreign.Text(c.plan.String())})
		s.log.Info("configuration loaded", "plan", c.plan.String())
		f.declared = c.fleet
		f.line.limit(c.fleet)
		s.desk.Limit(c.fleet.MaxChecks)
		f.carryOut(c)
		f.judgeAll(now)
		for m, why := range lost {
			m.Loses(why.Error())
			m.InspectLater(now)
		}
		for _, m := range f.members {
			if m.AskNow(now) {
				f.touch(m)
			}
		}
	})
	return c, err
}

// reloadable says why a version of the file cannot run from now on.
func (f *fleet) reloadable(file *config.Fleet, agents int) error {
	switch {
	case !f.works():
		return fmt.Errorf("cannot reload the fleet's file: %w", errStopping)
	case file.Name != f.declared.Name:
		return fmt.Errorf("cannot reload: the fleet's name changed from %q to %q, which takes a new run", f.declared.Name, file.Name)
	}
	return claim.EnoughDescriptors(agents, file.MaxSessions)
}

// takeAdded locks the directories of new agents, all or none. One that a member has, wherever
// that is by now, is handed on once that one has gone. This happens under the lock, so that no
// member goes meanwhile. A directory that cannot be used stops only its own agent, as at the
// start of a run.
func (f *fleet) takeAdded(c *change) (lost map[*member]error, err error) {
	there := map[string]*member{}
	for _, m := range f.members {
		there[m.Def().Dir] = m
	}
	var errs []error
	lost = map[*member]error{}
	for _, m := range c.added {
		before := there[m.Def().Dir]
		take := f.locks.Take
		if before != nil {
			take = f.locks.Lock // it is not made again while another one has it
		}
		claimed, err := take(m.Def())
		holder := f.holder(claimed, m)
		switch _, held := errors.AsType[*claim.HeldError](err); {
		case held:
			errs = append(errs, err)
		case err != nil && before != nil: // it is not there, or cannot be seen
			m.awaits = cmp.Or(before.claim, before.awaits).Again()
		case err != nil:
			m.claim, lost[m] = claim.Lost(), err
		case holder == nil:
			m.claim = claimed
		case holder.Removed() || slices.Contains(c.removed, holder):
			m.awaits = claimed
		default: // directories.retake takes it over, once that one has seen that it is not its own
			claimed.Release()
			m.claim, lost[m] = claim.Lost(), stillHas(holder)
		}
	}
	if len(errs) > 0 {
		for _, m := range c.added {
			m.release()
		}
	}
	return lost, claim.Joined(errs)
}

// stillHas is why a directory cannot be used that another agent of the fleet has.
func stillHas(holder *member) error {
	return fmt.Errorf("agent %q of this fleet still has that directory", holder.Name)
}

// carryOut makes new agents members of this run: an added agent is a member from
// then on. While another one still has its name or its directory it is expected: it
// is declared, its triggers fire into its inbox, but nothing of it is started or
// shown. When the last of its predecessors is gone it takes over, recovers what is
// in flight in its directory, and is an agent like all others.
func (f *fleet) carryOut(c *change) {
	byName, byDir := map[string][]*member{}, map[string][]*member{}
	for _, m := range f.members {
		byName[m.Name] = append(byName[m.Name], m)
		byDir[m.Def().Dir] = append(byDir[m.Def().Dir], m)
	}
	for _, m := range c.added {
		predecessors := slices.Concat(byName[m.Name], byDir[m.Def().Dir])
		if holder := f.holder(m.awaits, m); holder != nil {
			predecessors = append(predecessors, holder)
		}
		for _, before := range predecessors {
			if !slices.Contains(before.successors, m) {
				before.successors = append(before.successors, m)
				m.Expects()
			}
		}
		f.members = append(f.members, m)
		if !m.Expected() {
			m.TakeOver()
		}
		f.touch(m)
	}
	for _, m := range c.removed {
		m.Remove()
		f.askAgain(f.accounts.Leaves(m.Name))
		f.touch(m)
	}
	for _, m := range c.changed {
		m.Redefine(c.wanted[m.Name])
		m.wakeCheck() // what has to be passed may be another thing
		f.touch(m)
	}
}
