package status

import (
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/usage"
)

// Budget is one that is used up, of an agent that no scheduler runs: the next run keeps the
// agent parked until it ends.
type Budget struct {
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// Budgets tells which budgets of a fleet are used up, by the records of what was spent. What
// cannot be read counts as not spent; a run says so.
type Budgets struct {
	fleet *config.Fleet
	now   time.Time
	spent func() map[purse]*usage.Meter
}

// purse is what several agents spend from: a group's, the fleet's, or an agent's own.
type purse struct{ agent, group string }

// BudgetsOf returns those of a fleet. It reads the records when they are needed.
func BudgetsOf(f *config.Fleet, stateDir string, now time.Time) *Budgets {
	return &Budgets{f, now, sync.OnceValue(func() map[purse]*usage.Meter {
		all := map[purse]*usage.Meter{}
		known, _ := usage.Agents(stateDir)
		for _, name := range known {
			_ = usage.Read(stateDir, name, now.Add(-usage.Remembered), func(r usage.Record) {
				from := []purse{{}, {agent: name}}
				if r.Group != "" { // the group of then has spent it
					from = append(from, purse{group: r.Group})
				}
				for _, p := range from {
					if all[p] == nil {
						all[p] = &usage.Meter{}
					}
					all[p].Add(r.Sum, r.At, now)
				}
			})
		}
		return all
	})}
}

// Spent returns the budget that is used up for an agent: of several, the one that lasts
// longest; nil: none is.
func (b *Budgets) Spent(a *config.Agent) (longest *Budget) {
	try := func(from purse, name string, of config.Budget) {
		if over := b.over(a, from, name, of); over != nil && (longest == nil || over.Until.After(longest.Until)) {
			longest = over
		}
	}
	try(purse{agent: a.Name}, "its budget", a.Budget)
	if a.Group != "" {
		try(purse{group: a.Group}, "the budget of group "+a.Group, b.fleet.Budgets[a.Group])
	}
	try(purse{}, "the fleet's budget", b.fleet.Budget)
	return longest
}

// over returns the budget if it is used up.
func (b *Budgets) over(a *config.Agent, from purse, name string, of config.Budget) *Budget {
	for _, may := range usage.Bounds(usage.Allowance(of.Day), usage.Allowance(of.Hour), b.now, a.Zone) {
		if what := may.Allowance.Spent(b.spent()[from].Since(may.From)); what != "" {
			return &Budget{may.Period.Spent(name, what), may.Until}
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
