package status

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestResumeIsAdvisedOnlyWhereItHelps: status advised it for an agent that was parked because
// limits: leaves room to people, and a resume did not lift that. Walks what an agent may wait
// for, and all that is said of it.
func TestResumeIsAdvisedOnlyWhereItHelps(t *testing.T) {
	t.Parallel()
	now := time.Now()
	advised := 0
	for bits := range 1 << 7 {
		is := func(bit int) bool { return bits>>bit&1 == 1 }
		for _, state := range States() {
			a := Agent{AgentState: AgentState{Agent: "a", State: state, Since: now, Reason: "x", OverBudget: is(0), LeavesRoom: is(1), Lasts: is(4), GoesOn: is(5)}}
			if state == Parked {
				a.Until = now.Add(time.Hour)
			}
			if state == Stopped {
				a.Was = Held
			}
			if is(2) {
				a.Approval, a.Reason = &Approval{ID: "1", Question: "x"}, ForApproval+"x"
			}
			if is(3) {
				a.Paused = now
			}
			if is(6) {
				a.Reason = "authentication_failed"
			}
			_, stays := a.Stays("heartbeat")
			for _, trouble := range a.Troubles("heartbeat", now) {
				resume := slices.ContainsFunc(trouble.Commands(), func(c []string) bool { return c[0] == "resume" })
				if resume {
					advised++
				}
				if resume && stays && trouble.What != IsPaused {
					t.Errorf("%s says %+v, and a resume does not lift that", fmt.Sprintf("%+v", a.AgentState), trouble)
				}
			}
		}
	}
	if advised == 0 {
		t.Error("a resume is advised nowhere")
	}
}
