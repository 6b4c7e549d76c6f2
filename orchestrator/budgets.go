package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// purses returns what a member spends from.
func (f *fleet) purses(m *member) []status.Purse { return status.Purses(f.declared, m.Declared()) }

// spends notes what a member has spent. The members that share a budget with it learn
// whether that uses the budget up: their hours and days may be others, in another zone.
func (f *fleet) spends(m *member, sum usage.Sum, now time.Time) {
	if sum == (usage.Sum{}) {
		return
	}
	m.Spends(sum)
	f.spending.Add(m.Name, m.Declared().Group, sum, now, now)
	f.judge(m, now)
	for _, p := range f.purses(m)[1:] {
		if p.Budget == (config.Budget{}) {
			continue
		}
		for _, other := range f.members {
			shares := other != m && slices.ContainsFunc(f.purses(other), func(o status.Purse) bool { return o.Purse == p.Purse })
			if shares && f.used(p, other, now) != nil && f.judge(other, now) {
				f.touch(other)
			}
		}
	}
}

// judge tells a member whether a budget that it spends from is used up: of several, the
// one that lasts longest. It reports whether that is news.
func (f *fleet) judge(m *member, now time.Time) (news bool) {
	var longest *agent.Parking
	for _, p := range f.purses(m) {
		if over := f.used(p, m, now); over != nil && (longest == nil || over.Until.After(longest.Until)) {
			longest = over
		}
	}
	if longest == nil {
		return m.WithinBudget(now)
	}
	return m.Overspends(*longest, now)
}

// used returns which allowance of a purse is used up, and until when; nil: none. Hours
// and days are those of the member's zone.
func (f *fleet) used(p status.Purse, m *member, now time.Time) *agent.Parking {
	for _, may := range p.Bounds(now, m.Declared().Zone) {
		if why, until := p.Spent(may, f.spending, now); why != "" {
			return &agent.Parking{Until: until, Reason: why}
		}
	}
	return nil
}

// judgeAll is judge for all members, after the budgets may have changed.
func (f *fleet) judgeAll(now time.Time) {
	for _, m := range f.members {
		f.judge(m, now)
		f.touch(m)
	}
}

// recallSpending reads what was spent lately, also by an earlier run and by agents that are
// declared no more. Without it each would have its whole budget again.
func (s *Scheduler) recallSpending() error {
	since := s.opt.Now().Add(-usage.Remembered)
	var records []usage.Record
	var here usage.Mark
	err := s.opt.Store.Read(context.Background(), func(v *store.View) (err error) {
		if here, err = usage.Here(v); err != nil {
			return err
		}
		return usage.EachOf(v, since, func(r usage.Record) { records = append(records, r) })
	})
	if err != nil {
		return fmt.Errorf("cannot read what was spent: %w", err)
	}
	s.happened(nil, func(now time.Time) {
		names := s.fleet.names()
		for _, r := range records {
			r.Agent = cmp.Or(names[r.Key], r.Agent) // it was renamed
			s.fleet.recalls(r, now)
		}
		for _, m := range s.fleet.members {
			m.recalled = &here
		}
		s.fleet.judgeAll(now)
	})
	return nil
}

// names are those of the members, by their keys.
func (f *fleet) names() map[string]string {
	names := make(map[string]string, len(f.members))
	for _, m := range f.members {
		names[m.key] = m.Name
	}
	return names
}

// recallRest counts, before the first session of this run begins, what was recorded after
// recallSpending: until then the shim of an earlier run had the directory.
func (c course) recallRest() error {
	c.mu.Lock()
	had := c.m.recalled
	c.mu.Unlock()
	if had == nil {
		return nil
	}
	var records []usage.Record
	err := c.opt.Store.Read(context.Background(), func(v *store.View) error {
		return usage.After(v, c.m.Name, c.opt.Now().Add(-usage.Remembered), *had, func(r usage.Record) { records = append(records, r) })
	})
	if err != nil {
		return fmt.Errorf("cannot read what agent %q has spent: %w", c.m.Name, err)
	}
	c.happened(c.m, func(now time.Time) {
		c.m.recalled = nil
		for _, r := range records {
			c.fleet.recalls(r, now)
		}
	})
	return nil
}

// recalls notes what an agent has spent, also one that is no longer declared, or has another
// group now: its group of then has spent it.
func (f *fleet) recalls(r usage.Record, now time.Time) {
	f.spending.Add(r.Agent, r.Group, r.Sum, r.At, now)
}

// spent takes what a live session has spent since its last report, before the agent
// hears the report. What a dead shim reported but did not record stays spent.
func (c course) spent(all usage.Sum, now time.Time) {
	c.fleet.spends(c.m, all.Minus(c.m.Reported().Spent).NotLess(), now)
}

// settled takes, from its records, what a session has spent whose shim died before it
// could report it.
func (c course) settled() {
	c.mu.Lock()
	session, _ := c.m.Session()
	c.mu.Unlock()
	all, err := store.Get(context.Background(), c.opt.Store.Reader, func(v *store.View) (usage.Sum, error) { return usage.In(v, session) })
	if err != nil {
		c.log.Warn("cannot read what a session has cost", "agent", c.m.Name, "err", foreign.Text(err.Error()))
		return
	}
	c.happened(c.m, func(now time.Time) { c.spent(all, now) })
}
