package agent

import (
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/usage"
)

// Overspends says that one of the agent's budgets is used up until a period ends. Its live
// session is handed nothing more, and ends after its turn. It reports whether that is new.
func (a *Agent) Overspends(p Parking, now time.Time) (news bool) {
	if deadline.Over(p.Until, now) {
		return false
	}
	was := a.past.budget
	if p.Until.Round(0).Sub(was.until.Round(0)).Abs() < time.Second {
		a.past.budget.why = p.Reason
		return was.why != p.Reason // with what the turn in progress has added
	}
	a.past.budget = wait{deadline.On(p.Until, now, usage.Remembered), p.Reason}
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
func (a *Agent) Overspent(now time.Time) bool { return !deadline.Over(a.past.budget.until, now) }
