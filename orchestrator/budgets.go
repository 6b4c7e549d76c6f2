package orchestrator

import (
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// blindness is that nobody knows what was spent before a time.
type blindness struct {
	before time.Time
	why    string
}

// cannotRead notes that an agent's records cannot be read: all that it spends from may
// be spent, until a period begins in which all of it is known.
func (f *fleet) cannotRead(name string, m *member, err error, now time.Time) {
	if f.blind == nil {
		f.blind = map[usage.Purse]blindness{}
	}
	group := ""
	if m != nil {
		group = m.Declared().Group
	}
	for _, key := range usage.Purses(name, group) {
		if _, already := f.blind[key]; already {
			continue // from then on all is known
		}
		f.blind[key] = blindness{now, "is not known: " + err.Error()}
	}
}

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
		if b, is := f.blind[p.Purse]; is && may.From.Before(b.before) {
			return &agent.Parking{Until: may.Until, Reason: fmt.Sprintf("%s for the %s may be spent: what was spent before %s %s; mend that and restart `heartbeat run`",
				p.Name(), may.Period, b.before.Format(time.DateTime), b.why)}
		}
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

// recallSpending reads what was spent lately, also by an earlier run.
func (s *Scheduler) recallSpending() {
	known, err := usage.Agents(s.opt.StateDir)
	if err != nil {
		s.log.Warn("cannot read what sessions have cost", "err", err)
		s.happened(nil, func(now time.Time) {
			for _, m := range s.fleet.members {
				s.fleet.cannotRead(m.Name, m, err, now)
			}
		})
	}
	from := recalled{since: s.opt.Now().Add(-usage.Remembered)}
	for _, m := range s.fleet.members {
		m.recalled = from
	}
	for _, name := range known {
		m := s.fleet.find(name)
		if had := s.recallOf(name, m, from); m != nil {
			m.recalled = had
		}
	}
	s.happened(nil, s.fleet.judgeAll)
}

// recalled is how many of an agent's records from a time on are counted.
type recalled struct {
	since time.Time
	count int
}

// recallOf counts the records of an agent that are not counted yet.
func (s *Scheduler) recallOf(name string, m *member, had recalled) recalled {
	var records []usage.Record
	err := usage.Read(s.opt.StateDir, name, had.since, func(r usage.Record) { records = append(records, r) })
	if err != nil {
		s.log.Warn("cannot read what sessions have cost", "agent", name, "err", err)
		s.happened(m, func(now time.Time) { s.fleet.cannotRead(name, m, err, now) })
	}
	s.happened(m, func(now time.Time) {
		for _, r := range records[min(had.count, len(records)):] {
			s.fleet.recalls(name, r, now)
		}
	})
	return recalled{had.since, max(had.count, len(records))}
}

// recallRest counts, before the first session of this run begins, what the shim of an
// earlier run recorded after recallSpending: until it ended, it had the directory.
func (c course) recallRest() {
	c.mu.Lock()
	had := c.m.recalled
	c.m.recalled = recalled{}
	c.mu.Unlock()
	if had != (recalled{}) {
		c.recallOf(c.m.Name, c.m, had)
	}
}

// recalls notes what an agent has spent, also one that is no longer declared, or has
// another name or group now: its group of then has spent it.
func (f *fleet) recalls(name string, r usage.Record, now time.Time) {
	f.spending.Add(name, r.Group, r.Sum, r.At, now)
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
