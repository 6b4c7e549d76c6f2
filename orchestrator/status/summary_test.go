package status

import (
	"testing"
	"time"

	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/session"
)

// TestOnceVerdicts: what a run with --once was to do and has not done is no success, whatever
// it is, and has a reason; what is no part of the run changes nothing.
func TestOnceVerdicts(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	for name, tt := range map[string]struct {
		change func(a *AgentSummary)
		want   Verdict
	}{
		"nothing":                  {func(*AgentSummary) {}, AllDone},
		"tools that were refused":  {func(a *AgentSummary) { a.Denied = []session.Denied{{Rule: "Bash", Times: 1}} }, AllDone},
		"given up":                 {func(a *AgentSummary) { a.DeadLettered = 1 }, SomeLeft},
		"held":                     {func(a *AgentSummary) { a.State, a.Reason = Held, "x" }, SomeLeft},
		"left":                     {func(a *AgentSummary) { a.Queued = 1 }, SomeLeft},
		"parked":                   {func(a *AgentSummary) { a.State, a.Queued, a.Reason = Parked, 3, "x" }, SomeParked},
		"parked, and a loss":       {func(a *AgentSummary) { a.State, a.Reason, a.QueueLost = Parked, "x", &QueueLoss{} }, SomeLeft},
		"the directory is lost":    {func(a *AgentSummary) { a.Lost = "x is gone" }, SomeLeft},
		"the queue was lost":       {func(a *AgentSummary) { a.QueueLost = &QueueLoss{begin, session.Loss{What: "x is gone", Queued: 3}} }, SomeLeft},
		"the queue cannot be read": {func(a *AgentSummary) { a.Unread = "x" }, SomeLeft},
		"vanished":                 {func(a *AgentSummary) { a.Vanished = "2 queued prompts vanished" }, SomeLeft},
		"a trigger fails":          {func(a *AgentSummary) { a.Failing = []firing.Failing{{Trigger: "t", Why: "x"}} }, SomeLeft},
		"cannot be sent":           {func(a *AgentSummary) { a.Unsent = &Unable{begin, "x"} }, SomeLeft},
		"approvals are stuck":      {func(a *AgentSummary) { a.Untended = &Unable{begin, "x"} }, SomeLeft},
		"waits aside":              {func(a *AgentSummary) { a.Waiting = 2 }, SomeLeft},
	} {
		a := AgentSummary{AgentState: AgentState{Agent: "a", State: Idle}}
		tt.change(&a)
		s := Summary{Finished: true, Agents: []AgentSummary{{AgentState: AgentState{Agent: "b", State: Idle}}, a}}
		if got := s.Verdict(); got != tt.want || (a.Why() == "") != (tt.want == AllDone) {
			t.Errorf("%s: %s, %q; want %s", name, got, a.Why(), tt.want)
		}
	}
	for _, since := range []time.Time{begin.Add(-time.Hour), begin.Add(time.Second)} {
		s := Summary{Finished: true, Agents: []AgentSummary{{AgentState: AgentState{Agent: "a", State: Idle}}}}
		s.Vanish([]Trouble{{Agent: "a", What: LostPrompts, Since: since, Text: "2 queued prompts vanished"}, {Agent: "a", What: HasDeadLetters, Since: since}}, begin)
		if got := s.Verdict(); (got == SomeLeft) != since.After(begin) {
			t.Errorf("vanished at %s: %s", since.Sub(begin), got)
		}
	}
	if got := (&Summary{}).Verdict(); got != SomeLeft {
		t.Errorf("a run that did not finish: %s", got)
	}
	if got := (&Summary{Finished: true, Unfired: 1}).Verdict(); got != SomeLeft {
		t.Errorf("a trigger that was not fired: %s", got)
	}
	if got := (&Summary{Finished: true, Undelivered: "x"}).Verdict(); got != SomeLeft {
		t.Errorf("a reply that has not arrived: %s", got)
	}
}
