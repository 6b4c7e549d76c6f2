package main

import (
	"context"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/account"
	webpage "heartbeat/orchestrator/page"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// spent is what an agent has spent, by period.
type spent map[usage.Period]usage.Sum

// spending is what each agent has spent today and, where an hour has a budget, in it.
func (w *web) spending(f *config.Fleet, all status.Fleet, now time.Time) []spent {
	sums := make([]spent, len(f.Agents))
	var inHour map[string]usage.Sum
	if hasHours(f) {
		inHour = status.Spent(f, w.stateDir, usage.Hour, now) // else nothing is shown
	}
	for i, a := range f.Agents {
		sums[i] = spent{usage.Day: all.Agents[i].Today, usage.Hour: inHour[a.Name]}
	}
	return sums
}

// hasHours reports whether anything may be spent in an hour only.
func hasHours(f *config.Fleet) bool {
	none := config.Allowance{}
	return f.Budget.Hour != none || slices.ContainsFunc(f.Agents, func(a *config.Agent) bool {
		return a.Budget.Hour != none || f.Budgets[a.Group].Hour != none
	})
}

// budgetsOf are the budgets of the day and of the hour, of the fleet, of groups and of
// agents.
func budgetsOf(f *config.Fleet, sums []spent) (budgets []webpage.Budget) {
	for _, of := range []struct {
		period usage.Period
		most   func(config.Budget) config.Allowance
	}{
		{usage.Day, func(b config.Budget) config.Allowance { return b.Day }},
		{usage.Hour, func(b config.Budget) config.Allowance { return b.Hour }},
	} {
		var fleet usage.Sum
		var own, shared []webpage.Budget
		groups, met := map[string]usage.Sum{}, map[string]bool{"": true}
		for i, a := range f.Agents {
			sum := sums[i][of.period]
			fleet, groups[a.Group] = fleet.Plus(sum), groups[a.Group].Plus(sum)
			own = append(own, budgetOf(a.Name, of.period, of.most(a.Budget), sum)...)
		}
		for _, a := range f.Agents {
			if !met[a.Group] {
				met[a.Group] = true
				shared = append(shared, budgetOf("group "+a.Group, of.period, of.most(f.Budgets[a.Group]), groups[a.Group])...)
			}
		}
		budgets = append(budgets, budgetOf("the fleet", of.period, of.most(f.Budget), fleet)...)
		budgets = append(append(budgets, shared...), own...)
	}
	return budgets
}

// budgetOf says of each thing that may be spent how much of it is.
func budgetOf(of string, period usage.Period, most config.Allowance, sum usage.Sum) (all []webpage.Budget) {
	for _, b := range []webpage.Budget{
		{What: "cost", Spent: sum.Cost, Price: sum.Price(), Most: most.Cost},
		{What: "tokens", Spent: float64(sum.Input + sum.Output + sum.CacheWrite), Most: float64(most.Tokens)},
		{What: "resent tokens", Spent: float64(sum.CacheRead), Most: float64(most.Resent)},
		{What: "turns", Spent: float64(sum.Turns + sum.Unseen), Most: float64(most.Turns)},
	} {
		if b.Of, b.Period = of, string(period); b.Most > 0 {
			all = append(all, b)
		}
	}
	return all
}

// limits are how far the accounts' limits are used, as their clients have shown it last.
func (w *web) limits(now time.Time) (all []webpage.Limit) {
	kept, err := store.Get(context.Background(), w.store.Reader, account.Read)
	if err != nil {
		return nil // the scheduler says so
	}
	for id, k := range kept {
		parked := now.Before(k.Until)
		for _, of := range []struct {
			window string
			used   float64
			resets time.Time
		}{{"5 hours", k.Limits.FiveHour.Used, k.Limits.FiveHour.Resets}, {"7 days", k.Limits.SevenDay.Used, k.Limits.SevenDay.Resets}} {
			if now.Before(of.resets) {
				all = append(all, webpage.Limit{Account: string(id), Window: of.window, Used: of.used, Resets: of.resets, Parked: parked})
			}
		}
		if parked && k.Limits.IsZero() {
			all = append(all, webpage.Limit{Account: string(id), Window: "its limit", Used: 100, Resets: k.Until, Parked: true})
		}
	}
	return webpage.SortLimits(all)
}
