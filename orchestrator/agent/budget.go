package agent

import (
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/usage"
)

// Overspends says that one of the agent's budgets is used up until a period ends. Its live
// session is handed nothing more, and ends after its turn. It reports whether that is new.
func (a *Agent) Overspends(p Parking, now time.Time) (news bool) {
	if !p.Until.After(now) {
		return false
	}
	was := a.past.budget
	if a.past.budget = (wait{p.Until, p.Reason}); was.until.Equal(p.Until) {
		return was.why != p.Reason // with what the turn in progress has added
	}
	a.note(journal.Event{Kind: journal.OverBudget, Reason: foreign.Text(p.Reason), Until: p.Until})
	a.Finish(p.Reason)
	return true
}

// Spends adds what its sessions have cost.
func (a *Agent) Spends(s usage.Sum) { a.done.spent = a.done.spent.Plus(s) }

// WithinBudget says that no budget is used up. It reports whether that is new.
func (a *Agent) WithinBudget(now time.Time) (news bool) {
	if news = a.Overspent(now); news {
		a.past.budget = wait{}
		a.idle, a.queue.stale = "its budget allows more", true
	}
	return news
}

// Overspent reports whether the agent waits for the end of a period.
func (a *Agent) Overspent(now time.Time) bool { return now.Before(a.past.budget.until) }
