package agent

import (
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/usage"
)

// Overspends says that a budget that the agent spends from is used up until a period
// ends. Its live session is handed nothing more, and ends after its turn.
func (a *Agent) Overspends(p Parking, now time.Time) {
	if was := a.past.budget; was.until.Equal(p.Until) || !p.Until.After(now) {
		return
	}
	a.past.budget = wait{p.Until, p.Reason}
	a.note(journal.Event{Kind: journal.OverBudget, Reason: foreign.Text(p.Reason), Until: p.Until})
	a.Finish(p.Reason)
}

// Spends adds what its sessions have cost.
func (a *Agent) Spends(s usage.Sum) { a.done.spent = a.done.spent.Plus(s) }

// WithinBudget says that none is.
func (a *Agent) WithinBudget(now time.Time) {
	if a.Overspent(now) {
		a.past.budget = wait{}
		a.idle, a.queue.stale = "its budget allows more", true
	}
}

// Overspent reports whether the agent waits for the end of a period.
func (a *Agent) Overspent(now time.Time) bool { return now.Before(a.past.budget.until) }
