package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heartbeat/orchestrator/status"
)

// TestTheFirstNoIsWhatPeopleAreTold: gates are asked in their order.
func TestTheFirstNoIsWhatPeopleAreTold(t *testing.T) {
	t.Parallel()
	a := fresh()
	a.Begin("all session slots are taken", noon)
	for _, s := range []struct {
		happens func()
		state   status.State
		text    string
	}{
		{func() {}, status.Waiting, "all session slots are taken"},
		{func() { a.Loses("it is not there") }, status.Idle, "it is not there"},
		{func() { a.Parks(Parking{Until: noon.Add(time.Hour), Reason: "a limit"}) }, status.Parked, "a limit"},
		{func() { a.Fails(Failed{Text: "it broke"}, noon, 0) }, status.BackingOff, "it broke"},
		{func() { a.Fails(Failed{Text: "hooks are off", Fix: "turn them on"}, noon, 0) }, status.Held, "hooks are off"},
		{func() { a.Pause("b", noon) }, status.Held, `paused by a session of agent "b"`},
		{func() { a.Fails(Failed{Text: "a person is needed", Person: true}, noon, 0) }, status.Held, "a person is needed"},
		{func() { a.Remove() }, status.Idle, FinishRemoved},
	} {
		s.happens()
		if r := a.Standing(noon); r.State != s.state || r.Text != s.text {
			t.Errorf("%+v, want %s because %q", r, s.state, s.text)
		}
	}
}

// TestAGateMore is what another reason to start nothing takes: one function of
// what is known and of time, and its place among the others. Nothing else has to
// know it; this one parks an agent until midnight that has spent its budget.
func TestAGateMore(t *testing.T) {
	t.Parallel()
	const limit = 5.0
	spent := map[string]float64{"a": 3}
	budget := Gate{"budget", func(a *Agent, now time.Time) *Reason {
		if spent[a.Name] < limit {
			return nil
		}
		return &Reason{
			State: status.Parked, Text: fmt.Sprintf("$%.2f of $%.2f are spent", spent[a.Name], limit),
			Until: now.Truncate(24 * time.Hour).Add(24 * time.Hour),
		}
	}}
	i := slices.IndexFunc(Gates, func(g Gate) bool { return g.Name == "account" })
	gates := slices.Insert(slices.Clone(Gates), i, budget)
	a := fresh()
	if no := a.first(gates, noon); no != nil {
		t.Errorf("within its budget: %+v", no)
	}
	spent["a"] = 6
	no := a.first(gates, noon)
	if no == nil || no.State != status.Parked || no.Text != "$6.00 of $5.00 are spent" || !no.Until.Equal(noon.Add(12*time.Hour)) {
		t.Errorf("over its budget: %+v", no)
	}
	a.Pause("", noon)
	if no := a.first(gates, noon); no == nil || no.State != status.Held {
		t.Errorf("paused: %+v", no)
	}
}
