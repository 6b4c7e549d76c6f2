package status

import (
	"time"

	"heartbeat/hook/foreign"
)

// Stays reports whether what keeps the agent from working stays when a person resumes
// it; without a scheduler it is what will keep the next run from starting the agent. do is
// what ends it instead; ours is the beginning of a command line for this fleet.
func (a AgentState) Stays(ours string) (do string, stays bool) {
	switch {
	case a.awaitsApproval(), a.State == Stopped && a.Approval != nil:
		return ours + " approval approve " + a.Approval.ID + " | reject " + a.Approval.ID, true
	case a.State == Stopped && a.OverBudget:
		return "set a larger budget in the file", true
	case a.State == Parked && a.OverBudget:
		return "set a larger budget in the file, then " + ours + " reload", true
	case a.State == Parked && a.LeavesRoom:
		return "raise limits: in the file, then " + ours + " reload", true
	}
	return "", false
}

// Keeps takes in, for agents that no scheduler runs, what will keep the next run from starting
// them although a person has resumed them, as Read has found it.
func Keeps(states []AgentState, found []Agent) {
	for i := range states {
		for _, a := range found {
			if a.Agent == states[i].Agent && a.State == Stopped {
				states[i].keptBy(a)
			}
		}
	}
}

func (a *AgentState) keptBy(found Agent) {
	a.Approval, a.OverBudget, a.Until = found.Approval, found.OverBudget, time.Time{}
	switch {
	case a.Approval != nil:
		a.Reason = foreign.Text(ForApproval) + a.Approval.Question
	case found.Budget != nil:
		a.Reason, a.Until = foreign.Text(found.Budget.Why), found.Budget.Until
	}
}
