package status

import (
	"fmt"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
)

// Approval is a request that waits for a person's yes or no, and keeps its agent from
// working.
type Approval struct {
	ID       string       `json:"id"`
	Question foreign.Text `json:"question"`
	Category string       `json:"category,omitempty"`
	Since    time.Time    `json:"since"`
	// Until is when it ends as a no.
	Until time.Time `json:"until"`
	// More is how many further requests of the agent wait.
	More int `json:"more,omitempty"`
}

// ApprovalOf returns the first of the requests that is an agent's, or nil.
func ApprovalOf(waiting []approval.Request, is func(approval.Request) bool) (first *Approval) {
	for _, r := range waiting {
		switch {
		case !is(r):
		case first != nil:
			first.More++
		default:
			first = &Approval{ID: r.ID, Question: foreign.Text(r.Text()), Category: r.Category, Since: r.At, Until: r.Until}
		}
	}
	return first
}

// ForApproval begins the reason of an agent that is held until a person says yes or no.
const ForApproval = "waits for approval: "

// awaitsApproval reports whether that is what holds the agent.
func (a AgentState) awaitsApproval() bool {
	return a.State == Held && a.Approval != nil && strings.HasPrefix(a.Reason.Raw(), ForApproval)
}

// approvals returns what a person has to say yes or no to, since when, and how many
// prompts wait behind it.
func (a Agent) approvals(now time.Time) []sign {
	w := a.Approval
	if w == nil {
		return a.asides()
	}
	text := "waits for approval for " + Age(now.Sub(w.Since))
	if w.More > 0 {
		text += fmt.Sprintf(", and for %d more", w.More)
	}
	switch n := a.Depth.Entries; {
	case n == 1:
		text += "; 1 prompt waits behind it"
	case n > 1:
		text += fmt.Sprintf("; %d prompts wait behind it", n)
	}
	return append([]sign{{
		what: NeedsApproval, since: w.Since, text: text, why: w.Question.String(),
		do:   step{command: "approval show " + w.ID},
		then: step{command: "approval approve " + w.ID, remark: "or reject " + w.ID + " --note WHY"},
	}}, a.asides()...)
}

// asides returns what waits for a person while the queue goes on.
func (a Agent) asides() []sign {
	d := a.Depth
	if d.Aside == 0 {
		return nil
	}
	text := fmt.Sprintf("%d wait for approval aside since %s", d.Aside, d.AsideSince.Local().Format(time.DateTime))
	if d.Aside == 1 {
		text = "1 waits for approval aside since " + d.AsideSince.Local().Format(time.DateTime)
	}
	return []sign{{
		what: NeedsApproval, since: d.AsideSince, text: text, why: "the queue goes on; the answer puts it first",
		do: step{command: "approval"}, aside: true,
	}}
}
