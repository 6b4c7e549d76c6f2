package status

import (
	"cmp"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// Budget is one that is used up, of an agent that no scheduler runs: the next run keeps the
// agent parked until it ends.
type Budget struct {
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// Purse is one that an agent spends from, with the budget that the fleet's file gives it.
type Purse struct {
	usage.Purse
	config.Budget
}

// Purses returns those of an agent of a fleet.
func Purses(f *config.Fleet, a *config.Agent) (all []Purse) {
	for _, p := range usage.Purses(a.Name, a.Group) {
		of := Purse{p, f.Budget}
		switch {
		case p.Own():
			of.Budget = a.Budget
		case p.Group() != "":
			of.Budget = f.Budgets[p.Group()]
		}
		all = append(all, of)
	}
	return all
}

// Bounds returns the allowances of its budget, for the periods of an agent's zone.
func (p Purse) Bounds(now time.Time, zone *time.Location) []usage.Bound {
	return usage.Bounds(usage.Allowance(p.Day), usage.Allowance(p.Hour), now, zone)
}

// Spent says that an allowance of its budget is used up, by what was spent, and until when:
// the period's end, but no longer than a period after the last of it. "": it is not.
func (p Purse) Spent(may usage.Bound, from usage.Meters, now time.Time) (why string, until time.Time) {
	sum, last := from[p.Purse].Within(may.From, may.Until, now)
	what := may.Allowance.Spent(sum)
	if what == "" {
		return "", time.Time{}
	}
	until = deadline.On(may.Until, now, usage.Remembered)
	if longest := deadline.Shown(last.Add(may.Until.Sub(may.From)), now); longest.Before(until) {
		until = longest
	}
	return may.Period.Spent(p.Name(), what), until
}

// Budgets tells which budgets of a fleet are used up, by the records of what was spent. What
// cannot be read counts as not spent; a run says so.
type Budgets struct {
	fleet *config.Fleet
	now   time.Time
	spent func() usage.Meters
}

// BudgetsOf returns those of a fleet. It reads the records when they are needed.
func BudgetsOf(f *config.Fleet, stateDir string, now time.Time) *Budgets {
	return &Budgets{f, now, sync.OnceValue(func() usage.Meters {
		all := usage.Meters{}
		_ = usage.Read(stateDir, func(v *store.View) error {
			known, err := memory.Read(v)
			if err != nil {
				return err
			}
			names := map[string]string{}
			for name, who := range known.Declared() {
				names[who.Key] = name
			}
			return usage.EachOf(v, now.Add(-usage.Remembered), func(r usage.Record) {
				all.Add(cmp.Or(names[r.Key], r.Agent), r.Group, r.Sum, r.At, now) // the group of then has spent it
			})
		})
		return all
	})}
}

// Spent returns the budget that is used up for an agent: of several, the one that lasts
// longest; nil: none is.
func (b *Budgets) Spent(a *config.Agent) (longest *Budget) {
	for _, p := range Purses(b.fleet, a) {
		if over := b.over(a, p); over != nil && (longest == nil || over.Until.After(longest.Until)) {
			longest = over
		}
	}
	return longest
}

// over returns the budget if it is used up.
func (b *Budgets) over(a *config.Agent, p Purse) *Budget {
	for _, may := range p.Bounds(b.now, a.Zone) {
		if why, until := p.Spent(may, b.spent(), b.now); why != "" {
			return &Budget{why, until}
		}
	}
	return nil
}

// overspent returns that the next run keeps a stopped agent parked.
func (a Agent) overspent(now time.Time) []sign {
	return []sign{{
		what: OverBudget, since: a.Since, text: "the next run keeps it parked for another " + Span(max(0, a.Budget.Until.Sub(now))), why: a.Budget.Why,
		do:   step{command: "usage " + a.Agent + " --by entry", remark: "what it was spent on"},
		then: step{words: "a larger budget in the file ends that; otherwise it ends by itself"},
	}}
}
