package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
)

// Plan is what a reload changes. Agents stand in the order of the file, the
// removed ones in the order of the old one.
type Plan struct {
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Changed   []string `json:"changed"`
	Unchanged []string `json:"unchanged"`
	// Fleet names the fields at the top of the file that changed.
	Fleet []string `json:"fleet"`
}

// Empty reports whether nothing changes.
func (p *Plan) Empty() bool {
	return len(p.Added)+len(p.Removed)+len(p.Changed)+len(p.Fleet) == 0
}

// String is the plan on one line.
func (p *Plan) String() string {
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"added", p.Added}, {"removed", p.Removed}, {"changed", p.Changed}, {"fleet", p.Fleet}} {
		if len(part.names) > 0 {
			parts = append(parts, part.what+": "+strings.Join(part.names, ", "))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("unchanged: %d", len(p.Unchanged))), "; ")
}

// joining is an agent that a reload added while another agent of this run
// still has its name or its directory.
type joining struct {
	cfg *config.Agent
	// unlock holds the directory, or is nil while one of ours has it.
	unlock func() error
	after  map[*agent]bool
}

// Reload runs another version of the fleet's file from now on. Agents whose
// definition is the same are not touched. Removed ones, and those that moved
// to another directory, end after their turn. The triggers of changed ones are
// replaced at once; the rest of their definition holds from their next session
// on, for which a persist session makes way after its turn. An error means
// that nothing was changed.
func (s *Scheduler) Reload(f *config.Fleet) (*Plan, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	c, err := s.planReload(f)
	if err != nil {
		s.ReloadFailed(err)
		return nil, err
	}
	s.note(Event{Kind: "reloaded", Detail: c.plan.String()})
	s.log.Info("configuration loaded", "plan", c.plan.String())
	s.applyReload(c)
	return c.plan, nil
}

// ReloadFailed notes that a new version of the fleet's file cannot be used.
func (s *Scheduler) ReloadFailed(err error) {
	s.note(Event{Kind: "reload-failed", Reason: err.Error()})
	s.log.Error("the new configuration is not used; the old one stays", "err", err)
}

// change is a reload that can be carried out.
type change struct {
	fleet   *config.Fleet
	plan    *Plan
	removed []*agent
	changed map[*agent]*config.Agent
	joining []*joining
}

// planReload compares a new version of the file with what runs, and locks the
// directories of the agents that come.
func (s *Scheduler) planReload(f *config.Fleet) (*change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping || s.work == nil:
		return nil, errStopping
	case s.opt.Once:
		return nil, errors.New("cannot reload: a run with --once ends by itself")
	case f.Name != s.fleet.Name:
		return nil, fmt.Errorf("cannot reload: the fleet's name changed from %q to %q, which takes a new run", s.fleet.Name, f.Name)
	case len(s.joining) > 0:
		return nil, errors.New("cannot reload: the last reload still waits for sessions to end")
	}
	c := &change{fleet: f, plan: &Plan{Fleet: fleetChanges(s.fleet, f)}, changed: map[*agent]*config.Agent{}}
	wanted, present := map[string]*config.Agent{}, map[string]*agent{}
	for _, cfg := range s.chosen(f) {
		wanted[cfg.Name] = cfg
	}
	for _, a := range s.agents {
		if !a.removed {
			present[a.name] = a
		}
		if wanted[a.name] == nil && !a.removed {
			c.plan.Removed = append(c.plan.Removed, a.name)
			c.removed = append(c.removed, a)
		}
	}
	for _, cfg := range s.chosen(f) {
		a := present[cfg.Name]
		switch {
		case a == nil:
			c.plan.Added = append(c.plan.Added, cfg.Name)
			c.joining = append(c.joining, &joining{cfg: cfg})
		case sameAgent(a.declaredLocked(), cfg):
			c.plan.Unchanged = append(c.plan.Unchanged, cfg.Name)
		case a.cfg.Dir != cfg.Dir || a.cfg.Inbox != cfg.Inbox:
			c.plan.Changed = append(c.plan.Changed, cfg.Name)
			c.removed = append(c.removed, a)
			c.joining = append(c.joining, &joining{cfg: cfg})
		default:
			c.plan.Changed = append(c.plan.Changed, cfg.Name)
			c.changed[a] = cfg
		}
	}
	return c, s.lockJoiningLocked(c)
}

// lockJoiningLocked locks the directories of agents that come, but for those
// that an agent of this run still has.
func (s *Scheduler) lockJoiningLocked(c *change) error {
	var errs []error
	byName, byDir := map[string][]*agent{}, map[string][]*agent{}
	for _, a := range s.agents {
		byName[a.name] = append(byName[a.name], a)
		byDir[a.cfg.Dir] = append(byDir[a.cfg.Dir], a)
	}
	for _, j := range c.joining {
		j.after = map[*agent]bool{}
		for _, a := range slices.Concat(byName[j.cfg.Name], byDir[j.cfg.Dir]) {
			j.after[a] = true
		}
		if len(byDir[j.cfg.Dir]) > 0 {
			continue
		}
		var err error
		if j.unlock, err = takeDirectory(j.cfg); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	for _, j := range c.joining {
		if j.unlock != nil {
			_ = j.unlock()
		}
	}
	return errors.Join(errs...)
}

// sameAgent compares two definitions, but for where they stand in the file.
func sameAgent(a, b *config.Agent) bool { return reflect.DeepEqual(placeless(a), placeless(b)) }

func placeless(a *config.Agent) config.Agent {
	b := *a
	b.File, b.Line = "", 0
	b.Triggers = slices.Clone(b.Triggers)
	for i := range b.Triggers {
		b.Triggers[i].Line = 0
	}
	return b
}

func fleetChanges(old, f *config.Fleet) []string {
	var changed []string
	if old.MaxSessions != f.MaxSessions {
		changed = append(changed, fmt.Sprintf("max-sessions %d → %d", old.MaxSessions, f.MaxSessions))
	}
	if !maps.Equal(old.Groups, f.Groups) {
		changed = append(changed, "groups")
	}
	if old.SlotTime != f.SlotTime {
		changed = append(changed, fmt.Sprintf("slot-time %s → %s", old.SlotTime, f.SlotTime))
	}
	if old.ShutdownGrace != f.ShutdownGrace {
		changed = append(changed, fmt.Sprintf("shutdown-grace %s → %s", old.ShutdownGrace, f.ShutdownGrace))
	}
	return changed
}

// applyReload carries a reload out. The caller holds s.changing.
func (s *Scheduler) applyReload(c *change) {
	for _, a := range c.removed {
		s.stopTriggers(a)
	}
	for a, cfg := range c.changed {
		s.startAgent(s.work, a, cfg)
	}
	s.mu.Lock()
	s.fleet = c.fleet
	s.slots.limit(c.fleet)
	s.joining = append(s.joining, c.joining...)
	for _, a := range c.removed {
		s.removeLocked(a)
	}
	for a, cfg := range c.changed {
		s.redefineLocked(a, cfg)
	}
	s.joinLocked()
	for _, a := range slices.Clone(s.agents) {
		s.evaluateLocked(a)
	}
	s.slotFreedLocked()
	s.mu.Unlock()
	s.watchInboxes(s.work)
}

// removeLocked takes an agent out, after its turn when it is in one.
func (s *Scheduler) removeLocked(a *agent) {
	a.removed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	switch {
	case a.live != nil:
		s.finishLocked(a, finishRemoved)
	case a.state != Starting:
		s.vacatedLocked(a)
	}
}

// redefineLocked gives an agent a new definition. What went wrong before says
// nothing about it.
func (s *Scheduler) redefineLocked(a *agent, cfg *config.Agent) {
	if a.live != nil || a.state == Starting {
		a.next = cfg
		if a.live != nil && a.cfg.Mode == hook.Persist {
			s.finishLocked(a, finishChanged)
		}
		return
	}
	a.cfg = cfg
	s.slots.regrouped(a)
	a.history = history{}
	if a.state == BackingOff || a.state == Held && a.paused.IsZero() {
		s.enterLocked(a, Idle, finishChanged, time.Time{})
	}
}

// vacatedLocked follows the end of an agent's session: its next definition
// holds, or it is gone.
func (s *Scheduler) vacatedLocked(a *agent) {
	if a.next != nil {
		next := a.next
		a.next = nil
		s.redefineLocked(a, next)
	}
	if !a.removed || s.stopping {
		return
	}
	s.slots.moved(a, a.state, Idle)
	s.agents = slices.DeleteFunc(s.agents, func(b *agent) bool { return b == a })
	if a.timer != nil {
		a.timer.Stop()
	}
	a.release()
	s.note(Event{Agent: a.name, Kind: "removed"})
	s.log.Info("agent removed", "agent", a.name)
	for _, j := range s.joining {
		delete(j.after, a)
	}
	s.joinLocked()
}

// joinLocked lets those agents come whose name and directory are free.
func (s *Scheduler) joinLocked() {
	s.joining = slices.DeleteFunc(s.joining, func(j *joining) bool {
		if len(j.after) > 0 || s.stopping {
			return false
		}
		s.arriving++
		s.wg.Go(func() {
			s.join(j)
			s.arrived()
		})
		return true
	})
}

// join makes an agent one of those that run.
func (s *Scheduler) join(j *joining) {
	unlock := j.unlock
	if unlock == nil {
		var err error
		if unlock, err = takeDirectory(j.cfg); err != nil {
			s.note(Event{Agent: j.cfg.Name, Kind: "reload-failed", Reason: err.Error()})
			s.log.Error("the agent is not run", "agent", j.cfg.Name, "err", err)
			return
		}
	}
	a := newAgent(j.cfg)
	a.unlock = unlock
	s.changing.Lock()
	defer s.changing.Unlock()
	since, err := readPauses(s.opt.StateDir)
	if err != nil {
		s.log.Warn("cannot read which agents are paused", "err", err)
	}
	s.mu.Lock()
	a.paused = since[a.name]
	s.agents = append(s.agents, a)
	s.enterLocked(a, Starting, "recovering", time.Time{}) // nothing else starts meanwhile
	s.mu.Unlock()
	s.note(Event{Agent: a.name, Kind: "added"})
	s.recoverJoined(a)
	s.startAgent(s.work, a, j.cfg)
}

// arrived watches the inboxes anew when the last agent that was to come is
// there: a watch is of all of them.
func (s *Scheduler) arrived() {
	s.mu.Lock()
	s.arriving--
	last := s.arriving == 0
	s.mu.Unlock()
	if last {
		s.changing.Lock()
		defer s.changing.Unlock()
		s.watchInboxes(s.work)
	}
}

func (s *Scheduler) recoverJoined(a *agent) {
	err := s.recover(context.WithoutCancel(s.work), a, a.cfg, lastOutcome(a.cfg.Home))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failLocked(a, err)
	} else {
		s.followLocked(a, next{state: Idle, reason: "added by a reload"})
	}
	s.evaluateLocked(a)
	s.slotFreedLocked()
}
