package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DefaultShutdownGrace is the default of `shutdown-grace`.
const DefaultShutdownGrace = 30 * time.Second

// DefaultSlotTime is the default of `slot-time`: long enough for a conversation to
// be worth its start.
const DefaultSlotTime = 30 * time.Minute

// mostShutdownGrace bounds shutdown-grace: service managers do not wait longer.
const mostShutdownGrace = day

// capacity reads how many sessions may run at once, in total and per group, how
// long a session may keep its slot while others wait, and how long a shutdown waits
// for turns.
func (l *loader) capacity(t table, f *Fleet) {
	f.MaxSessions = l.number(t, "max-sessions", DefaultMaxSessions, 1)
	if _, ok := t["max-checks"]; ok {
		f.MaxChecks = l.number(t, "max-checks", 0, 1)
	}
	f.ShutdownGrace = l.duration(t, "shutdown-grace", DefaultShutdownGrace, bounds{none: true, most: mostShutdownGrace})
	f.SlotTime = l.duration(t, "slot-time", DefaultSlotTime, bounds{none: true})
	f.Budget = l.budget(t, false)
	p, ok := t["groups"]
	if !ok {
		return
	}
	f.Groups, f.Budgets = map[string]int{}, map[string]Budget{}
	for name, entry := range l.entries(p) {
		l.checkName(entry.named(), name)
		fields, ok := l.table(entry, keys[groupKeys](), nil)
		if !ok {
			continue
		}
		if _, ok := fields["max-sessions"]; !ok {
			l.absence(entry.of(entry.key, entry.join("max-sessions")), "write "+name+": {max-sessions: 1}")
		}
		f.Groups[name] = l.number(fields, "max-sessions", 1, 1)
		if b := l.budget(fields, false); b != (Budget{}) {
			f.Budgets[name] = b
		}
		l.ofGroup[name] = table{}
		if p, ok := fields["resources"]; ok {
			l.resources(fields) // for its problems, also when no agent uses it
			l.ofGroup[name]["resources"] = p
		}
		if p, ok := fields["notify"]; ok {
			l.targetsNamed(p)
			l.ofGroup[name]["notify"] = p
		}
	}
}

// grouped is an agent's group with its place in the file.
type grouped struct {
	agent *Agent
	where place
}

// group reads an agent's group.
func (l *loader) group(a *Agent, t table) {
	p, ok := t["group"]
	if !ok {
		return
	}
	if a.Group, ok = l.filled(p); ok {
		l.grouped = append(l.grouped, grouped{a, p})
	}
}

// groups checks that each agent's group is declared, and that agents that keep
// their sessions for ever leave at least one slot of their group free.
func (l *loader) groups(f *Fleet) {
	keep := map[string]int{}
	for _, g := range l.grouped {
		name := g.agent.Group
		limit, ok := f.Groups[name]
		if !ok {
			hint := fmt.Sprintf("declare it: groups: {%s: {max-sessions: 1}}", cut(name))
			if len(f.Groups) > 0 {
				hint = "the groups are " + strings.Join(slices.Sorted(maps.Keys(f.Groups)), ", ")
			}
			l.problem(g.where, fmt.Sprintf("the group %q is not declared", cut(name)), hint)
			continue
		}
		if g.agent.KeepsSlot() && g.agent.Name != "" {
			if keep[name]++; keep[name] == limit {
				l.problem(g.where, fmt.Sprintf("agents with mode: persist and on-idle: tick keep all %d sessions of the group %q for ever", limit, name),
					fmt.Sprintf("write max-sessions: %d for the group, or on-idle: release", limit+1))
			}
		}
	}
}
