package status

// Stays reports whether what keeps the agent from working stays when a person resumes
// it. do is what ends it instead; ours is the beginning of a command line for this fleet.
func (a AgentState) Stays(ours string) (do string, stays bool) {
	switch {
	case a.awaitsApproval():
		return ours + " approval approve " + a.Approval.ID + " | reject " + a.Approval.ID, true
	case a.State == Parked && a.OverBudget:
		return "set a larger budget in the file, then " + ours + " reload", true
	}
	return "", false
}
