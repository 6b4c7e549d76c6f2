package orchestrator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/memory"
)

// Plan is what a reload changes. Agents are in the order of the file, the removed
// ones in the order of the old one.
type Plan struct {
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Changed   []string `json:"changed"`
	Unchanged []string `json:"unchanged"`
	// Fleet names the fields at the top of the file that changed.
	Fleet []string `json:"fleet"`
	// Anew are the triggers that start over: it is no longer known what they have
	// fired before.
	Anew []memory.Anew `json:"anew,omitempty"`
}

// Empty reports whether nothing changes.
func (p *Plan) Empty() bool {
	return len(p.Added)+len(p.Removed)+len(p.Changed)+len(p.Fleet) == 0
}

// String returns the plan on one line.
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

// change is a reload that can be carried out.
type change struct {
	fleet  *config.Fleet
	plan   *Plan
	wanted map[string]*config.Agent // by name
	// removed no longer run, changed run as they are wanted from now on, added are
	// in no list yet.
	removed, changed, added []*member
}

// compare compares a new version of the file, of which the wanted agents run, with
// what runs.
func (f *fleet) compare(file *config.Fleet, wanted []*config.Agent, now time.Time) *change {
	c := &change{fleet: file, plan: &Plan{Fleet: fleetChanges(f.declared, file)}, wanted: map[string]*config.Agent{}}
	for _, cfg := range wanted {
		c.wanted[cfg.Name] = cfg
	}
	present := map[string]*member{}
	for _, m := range f.members {
		switch {
		case m.Removed():
			continue
		case c.wanted[m.Name] == nil:
			c.plan.Removed = append(c.plan.Removed, m.Name)
			c.removed = append(c.removed, m)
		}
		present[m.Name] = m
	}
	for _, cfg := range wanted {
		m := present[cfg.Name]
		switch {
		case m == nil:
			c.plan.Added = append(c.plan.Added, cfg.Name)
			c.added = append(c.added, newMember(cfg, now))
		case sameAgent(m.Declared(), cfg):
			c.plan.Unchanged = append(c.plan.Unchanged, cfg.Name)
		case m.Def().Dir != cfg.Dir || m.Def().Inbox != cfg.Inbox:
			c.plan.Changed = append(c.plan.Changed, cfg.Name)
			c.removed = append(c.removed, m)
			c.added = append(c.added, newMember(cfg, now))
		default:
			c.plan.Changed = append(c.plan.Changed, cfg.Name)
			c.changed = append(c.changed, m)
		}
	}
	return c
}

// sameAgent compares two definitions, except for their places in the file.
func sameAgent(a, b *config.Agent) bool { return reflect.DeepEqual(a.Placeless(), b.Placeless()) }

func fleetChanges(old, f *config.Fleet) []string {
	var changed []string
	if old.MaxSessions != f.MaxSessions {
		changed = append(changed, fmt.Sprintf("max-sessions %d → %d", old.MaxSessions, f.MaxSessions))
	}
	if old.MaxChecks != f.MaxChecks {
		changed = append(changed, fmt.Sprintf("max-checks %s → %s", asMany(old.MaxChecks), asMany(f.MaxChecks)))
	}
	if !maps.Equal(old.Groups, f.Groups) {
		changed = append(changed, "groups")
	}
	if !reflect.DeepEqual(old.Listen, f.Listen) {
		changed = append(changed, "listen")
	}
	if !reflect.DeepEqual(old.Page, f.Page) {
		changed = append(changed, "page")
	}
	if !reflect.DeepEqual(old.Budget, f.Budget) || !reflect.DeepEqual(old.Budgets, f.Budgets) {
		changed = append(changed, "budget")
	}
	if !reflect.DeepEqual(old.Targets, f.Targets) {
		changed = append(changed, "notify")
	}
	if !reflect.DeepEqual(old.Ping, f.Ping) {
		changed = append(changed, "ping")
	}
	if old.SlotTime != f.SlotTime {
		changed = append(changed, fmt.Sprintf("slot-time %s → %s", unlimited(old.SlotTime), unlimited(f.SlotTime)))
	}
	if old.ShutdownGrace != f.ShutdownGrace {
		changed = append(changed, fmt.Sprintf("shutdown-grace %s → %s", old.ShutdownGrace, f.ShutdownGrace))
	}
	return changed
}

// unlimited returns a limit in the words of the file.
func unlimited(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return d.String()
}

// chosen returns the agents of a fleet that are to run.
func chosen(f *config.Fleet, only []string) []*config.Agent {
	if len(only) == 0 {
		return f.Agents
	}
	var chosen []*config.Agent
	for _, a := range f.Agents {
		if slices.Contains(only, a.Name) {
			chosen = append(chosen, a)
		}
	}
	return chosen
}

// asMany is a number of max-checks in words.
func asMany(n int) string {
	if n == 0 {
		return "as many as processors"
	}
	return strconv.Itoa(n)
}
