package doctor

import (
	"fmt"
	"strings"
	"time"

	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/status"
)

// approvals notes what an agent asks people for.
func (a *Agent) approvals(waiting []approval.Request) {
	of := func(holdsUp bool) *status.Approval {
		return status.ApprovalOf(waiting, func(r approval.Request) bool {
			return r.Agent == a.Config.Name && r.HoldsUp(a.Queue.Aside) == holdsUp
		})
	}
	a.Approval, a.Aside = of(true), of(false)
}

// checkApprovals: what waits for a person's yes or no, also where no run says so.
func checkApprovals(f *Facts, a *Agent) []Finding {
	var found []Finding
	if w := a.Approval; w != nil {
		found = append(found, a.waitsFor(f, w, "waits for approval for ", "the agent stands still until you answer, and "+waits(a)))
	}
	if w := a.Aside; w != nil {
		found = append(found, a.waitsFor(f, w, "a prompt waits for approval aside for ", "the other prompts go on; this one is not done before you answer"))
	}
	return found
}

func (a *Agent) waitsFor(f *Facts, w *status.Approval, since, why string) Finding {
	seen := since + age(f.Now.Sub(w.Since))
	if w.More > 0 {
		seen += fmt.Sprintf(", and for %d more", w.More)
	}
	return Finding{
		Severity: Warning, Code: "approval", Seen: seen + ": " + w.Question.String(),
		Why: fmt.Sprintf("%s; rejected automatically on %s", why, w.Until.Local().Format(time.DateTime)),
		Fix: fmt.Sprintf("%s %s, then approve or reject it", ours(a.ours, "approval show"), w.ID),
	}
}

// forApproval reports whether an agent is, or was, held for a yes or a no: then that is
// what is said.
func (a *Agent) forApproval(s status.AgentState) bool {
	return s.State == status.Held && strings.HasPrefix(s.Reason.Raw(), status.ForApproval)
}

// last is what a run says of the agent, or has said at its end.
func (a *Agent) last() status.AgentState {
	if a.Was != nil {
		return *a.Was
	}
	return a.State
}
