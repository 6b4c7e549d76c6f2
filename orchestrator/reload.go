package orchestrator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
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
	// Anew are the triggers that begin anew: what they have fired before is not
	// known to be theirs any more.
	Anew []memory.Anew `json:"anew,omitempty"`
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

// Reload runs another version of the fleet's file from now on. Agents whose
// definition is the same are not touched. Removed ones, and those that moved
// to another directory, end after their turn. The triggers of changed ones are
// replaced at once; the rest of their definition holds from their next session
// on, for which a persist session makes way after its turn. An error means
// that nothing was changed.
func (s *Scheduler) Reload(f *config.Fleet) (*Plan, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	c, err := s.change(f)
	if err != nil {
		s.ReloadFailed(err)
		return nil, err
	}
	if _, err := memory.Note(s.opt.StateDir, f.Agents, s.chosen(f), time.Now()); err != nil {
		s.log.Warn("cannot keep who the agents are", "err", err)
	}
	for _, a := range c.removed {
		a.triggers.Stop()
	}
	for _, a := range slices.Concat(c.changed, c.added) {
		c.plan.Anew = append(c.plan.Anew, a.triggers.Set(s.work, c.wanted[a.name])...)
		s.noticed(a)
	}
	s.watchInboxes(s.work)
	return c.plan, nil
}

// ReloadFailed notes that a new version of the fleet's file cannot be used.
func (s *Scheduler) ReloadFailed(err error) {
	s.note(journal.Event{Kind: journal.ReloadFailed, Reason: foreign.Text(err.Error())})
	s.log.Error("the new configuration is not used; the old one stays", "err", err)
}

// change is a reload that can be carried out.
type change struct {
	fleet  *config.Fleet
	plan   *Plan
	wanted map[string]*config.Agent // by name
	// removed are no longer run, changed are run as they are wanted from now on,
	// added are in no list yet.
	removed, changed, added []*agent
}

// change carries out what a new version of the file means for the agents, all
// of it or nothing.
func (s *Scheduler) change(f *config.Fleet) (*change, error) {
	known, err := memory.Read(s.opt.StateDir)
	if err != nil {
		return nil, err
	}
	who := known.Follow(f.Agents, time.Now()).Declared()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reloadableLocked(f); err != nil {
		return nil, err
	}
	c := s.planLocked(f)
	for _, a := range c.added {
		s.is(a, who[a.name])
	}
	if err := s.lockAddedLocked(c); err != nil {
		return nil, err
	}
	s.note(journal.Event{Kind: journal.Reloaded, Detail: foreign.Text(c.plan.String())})
	s.log.Info("configuration loaded", "plan", c.plan.String())
	s.fleet = c.fleet
	s.slots.Limit(c.fleet.MaxSessions, c.fleet.Groups)
	s.expectLocked(c.added)
	for _, a := range c.removed {
		s.removeLocked(a)
	}
	for _, a := range c.changed {
		s.redefineLocked(a, c.wanted[a.name])
	}
	s.slotFreedLocked()
	return c, nil
}

// reloadableLocked says why a version of the file cannot be run from now on.
func (s *Scheduler) reloadableLocked(f *config.Fleet) error {
	switch {
	case s.stopping || s.work == nil:
		return errStopping
	case f.Name != s.fleet.Name:
		return fmt.Errorf("cannot reload: the fleet's name changed from %q to %q, which takes a new run", s.fleet.Name, f.Name)
	}
	return claim.EnoughDescriptors(len(s.chosen(f)), f.MaxSessions)
}

// planLocked compares a new version of the file with what runs.
func (s *Scheduler) planLocked(f *config.Fleet) *change {
	c := &change{fleet: f, plan: &Plan{Fleet: fleetChanges(s.fleet, f)}, wanted: map[string]*config.Agent{}}
	for _, cfg := range s.chosen(f) {
		c.wanted[cfg.Name] = cfg
	}
	present := map[string]*agent{}
	for _, a := range s.agents {
		switch {
		case a.removed:
			continue
		case c.wanted[a.name] == nil:
			c.plan.Removed = append(c.plan.Removed, a.name)
			c.removed = append(c.removed, a)
		}
		present[a.name] = a
	}
	for _, cfg := range s.chosen(f) {
		a := present[cfg.Name]
		switch {
		case a == nil:
			c.plan.Added = append(c.plan.Added, cfg.Name)
			c.added = append(c.added, newAgent(cfg))
		case sameAgent(a.declaredLocked(), cfg):
			c.plan.Unchanged = append(c.plan.Unchanged, cfg.Name)
		case a.cfg.Dir != cfg.Dir || a.cfg.Inbox != cfg.Inbox:
			c.plan.Changed = append(c.plan.Changed, cfg.Name)
			c.removed = append(c.removed, a)
			c.added = append(c.added, newAgent(cfg))
		default:
			c.plan.Changed = append(c.plan.Changed, cfg.Name)
			c.changed = append(c.changed, a)
		}
	}
	return c
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
		changed = append(changed, fmt.Sprintf("slot-time %s → %s", unlimited(old.SlotTime), unlimited(f.SlotTime)))
	}
	if old.ShutdownGrace != f.ShutdownGrace {
		changed = append(changed, fmt.Sprintf("shutdown-grace %s → %s", old.ShutdownGrace, f.ShutdownGrace))
	}
	return changed
}

// unlimited is a limit in the words of the file.
func unlimited(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return d.String()
}

// removeLocked takes an agent out, after its turn when it is in one.
func (s *Scheduler) removeLocked(a *agent) {
	a.removed = true
	s.leaveAccountLocked(a)
	if a.timer != nil {
		a.timer.Stop()
	}
	switch {
	case a.live != nil:
		s.finishLocked(a, finishRemoved)
	case a.state != Starting && !a.recovering:
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
	s.slots.Regroup(a, a.cfg.Group)
	a.history = history{}
	s.leaveAccountLocked(a)
	if a.state == BackingOff || a.state == Parked || a.state == Held && a.paused.IsZero() {
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
	s.slots.Leave(a)
	s.agents = slices.DeleteFunc(s.agents, func(b *agent) bool { return b == a })
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.predecessors == 0 {
		s.note(journal.Event{Agent: a.name, Kind: journal.Removed})
		s.log.Info("agent removed", "agent", a.name)
	}
	s.succeedLocked(a)
}
