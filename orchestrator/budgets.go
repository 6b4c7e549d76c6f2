package orchestrator

import (
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/usage"
)

// spending is what was spent lately, by whom there may be a budget of: "agent NAME",
// "group NAME", "fleet".
type spending map[string]*usage.Meter

func (s spending) add(key string, sum usage.Sum, at time.Time) {
	if s[key] == nil {
		s[key] = &usage.Meter{}
	}
	s[key].Add(sum, at)
}

// purse is what a budget is of.
type purse struct {
	key  string // in spending
	name string // for people
	config.Budget
}

// purses are those that a member spends from: its own, its group's, the fleet's.
func (f *fleet) purses(m *member) []purse {
	def := m.Declared()
	all := []purse{{"agent " + m.Name, "its budget", def.Budget}}
	if def.Group != "" {
		all = append(all, purse{"group " + def.Group, "the budget of group " + def.Group, f.declared.Budgets[def.Group]})
	}
	return append(all, purse{"fleet", "the fleet's budget", f.declared.Budget})
}

// spends notes what a member has spent. Who shares a budget that is used up with it
// learns it, too.
func (f *fleet) spends(m *member, sum usage.Sum, at, now time.Time) {
	if sum == (usage.Sum{}) {
		return
	}
	m.Spends(sum)
	for _, p := range f.purses(m) {
		f.spending.add(p.key, sum, at)
	}
	f.judge(m, now)
	if !m.Overspent(now) {
		return
	}
	for _, p := range f.purses(m)[1:] {
		if f.used(p, m, now) == nil {
			continue
		}
		for _, other := range f.members {
			if other != m && !other.Overspent(now) && slices.ContainsFunc(f.purses(other), func(o purse) bool { return o.key == p.key }) {
				f.judge(other, now)
				f.touch(other)
			}
		}
	}
}

// judge has a member know whether a budget that it spends from is used up.
func (f *fleet) judge(m *member, now time.Time) {
	for _, p := range f.purses(m) {
		if over := f.used(p, m, now); over != nil {
			m.Overspends(*over, now)
			return
		}
	}
	m.WithinBudget(now)
}

// used says which allowance of a purse is used up, and until when; nil: none. Hours
// and days are those of the member's zone.
func (f *fleet) used(p purse, m *member, now time.Time) *agent.Parking {
	zone := m.Declared().Zone
	if zone == nil {
		zone = time.Local
	}
	for _, of := range []struct {
		period usage.Period
		config.Allowance
	}{{usage.Day, p.Day}, {usage.Hour, p.Hour}} {
		if of.Allowance == (config.Allowance{}) {
			continue
		}
		from, until := of.period.Bounds(now.In(zone))
		if what := usage.Allowance(of.Allowance).Spent(f.spending[p.key].Since(from)); what != "" {
			return &agent.Parking{Until: until, Reason: fmt.Sprintf("%s for the %s is spent: %s", p.name, of.period, what)}
		}
	}
	return nil
}

// judgeAll is judge after the budgets may have changed.
func (f *fleet) judgeAll(now time.Time) {
	for _, m := range f.members {
		f.judge(m, now)
		f.touch(m)
	}
}

// recallSpending reads what was spent lately, by an earlier run, too.
func (s *Scheduler) recallSpending() {
	known, err := usage.Agents(s.opt.StateDir)
	if err != nil {
		s.log.Warn("cannot read what sessions have cost: budgets begin anew", "err", err)
	}
	since := time.Now().Add(-usage.Remembered)
	for _, name := range known {
		s.mu.Lock()
		m := s.fleet.find(name)
		s.mu.Unlock()
		var records []usage.Record
		if err := usage.Read(s.opt.StateDir, name, since, func(r usage.Record) { records = append(records, r) }); err != nil {
			s.log.Warn("cannot read what sessions have cost: budgets begin anew", "agent", name, "err", err)
		}
		s.happened(m, func(now time.Time) {
			for _, r := range records {
				s.fleet.recalls(name, m, r)
			}
			if m != nil {
				s.fleet.judge(m, now)
			}
		})
	}
	s.happened(nil, s.fleet.judgeAll)
}

// recalls notes what an agent has spent, which may not be declared any more.
func (f *fleet) recalls(name string, m *member, r usage.Record) {
	if m == nil {
		f.spending.add("agent "+name, r.Sum, r.At)
		f.spending.add("fleet", r.Sum, r.At)
		return
	}
	for _, p := range f.purses(m) {
		f.spending.add(p.key, r.Sum, r.At)
	}
}

// spent takes what a live session has spent since its last report; it is asked before
// the agent hears the report.
func (c course) spent(all usage.Sum, now time.Time) {
	c.fleet.spends(c.m, all.Minus(c.m.Reported().Spent), now, now)
}

// settled takes what a session has spent whose shim died before it could say so: its
// records tell.
func (c course) settled() {
	c.mu.Lock()
	session, _ := c.m.Session()
	c.mu.Unlock()
	var all usage.Sum
	err := usage.Read(c.opt.StateDir, c.m.Name, time.Time{}, func(r usage.Record) {
		if r.Session == session {
			all = all.Plus(r.Sum)
		}
	})
	if err != nil {
		c.log.Warn("cannot read what a session has cost", "agent", c.m.Name, "err", foreign.Text(err.Error()))
		return
	}
	c.happened(c.m, func(now time.Time) { c.spent(all, now) })
}
