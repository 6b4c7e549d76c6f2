package consent

import (
	"fmt"
	"testing"

	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/proving"
)

// What a person is asked about work that has passed its check begins with which work it
// is, on one line.
func TestTheQuestionNamesThePrompt(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"Prepare release 1.4":       `Is this done? "Prepare release 1.4" Its check has passed.`,
		"two\nlines \"and\" quotes": `Is this done? "two lines \"and\" quotes" Its check has passed.`,
		" ":                         `Is this done? Its check has passed.`,
	} {
		if got := isDone(prompt); got != want {
			t.Errorf("%q: %s, want %s", prompt, got, want)
		}
	}
}

// TestEachHasToSayYes: one no is a no, and what nobody has answered is no yes.
func TestEachHasToSayYes(t *testing.T) {
	t.Parallel()
	of := func(states ...approval.State) (all []approval.Request) {
		for i, s := range states {
			all = append(all, approval.Request{Name: fmt.Sprint(i), State: s, By: "a person"})
		}
		return all
	}
	for _, c := range []struct {
		all  []approval.Request
		want proving.Answer
	}{
		{of(approval.Approved), proving.Approved},
		{of(approval.Approved, approval.Approved), proving.Approved},
		{of(approval.Approved, approval.Asked), proving.Waits},
		{of(approval.Asked, approval.Approved), proving.Waits},
		{of(approval.Asked, approval.Rejected), proving.Rejected},
		{of(approval.Rejected, approval.Asked), proving.Rejected},
		{of(approval.Approved, approval.Expired), proving.Rejected},
		{of(approval.Withdrawn), proving.Rejected},
		{of(""), proving.Rejected},
	} {
		if got := together(c.all); got.Answer != c.want {
			t.Errorf("%+v: %q, want %q", c.all, got.Answer, c.want)
		}
	}
}
