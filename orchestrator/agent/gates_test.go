package agent

import (
	"slices"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
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
		{func() { a.Parks(Parking{Until: noon.Add(time.Hour), Reason: "a limit"}, noon) }, status.Parked, "a limit"},
		{func() { a.Fails(Failed{Text: "it broke"}, noon, 0) }, status.BackingOff, "it broke"},
		{func() { a.Fails(Failed{Text: "hooks are off", Fix: "turn them on", Blocks: true}, noon, 0) }, status.Held, "hooks are off"},
		{func() { a.Pause(memory.Paused{Since: noon, By: "b"}) }, status.Held, `paused by a session of agent "b"`},
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
// know it; this one has an agent wait that another machine has a lease on.
func TestAGateMore(t *testing.T) {
	t.Parallel()
	leases := map[string]time.Time{}
	lease := Gate{"lease", func(a *Agent, now time.Time) *Reason {
		if until := leases[a.Name]; now.Before(until) {
			return &Reason{State: status.Waiting, Text: "another machine has it", Until: until}
		}
		return nil
	}}
	i := slices.IndexFunc(Gates, func(g Gate) bool { return g.Name == "account" })
	gates := slices.Insert(slices.Clone(Gates), i, lease)
	a := fresh()
	if no := a.first(gates, noon); no != nil {
		t.Errorf("without a lease: %+v", no)
	}
	leases["a"] = noon.Add(time.Minute)
	no := a.first(gates, noon)
	if no == nil || no.State != status.Waiting || no.Text != "another machine has it" || !no.Until.Equal(noon.Add(time.Minute)) {
		t.Errorf("with a lease: %+v", no)
	}
	a.Pause(memory.Paused{Since: noon})
	if no := a.first(gates, noon); no == nil || no.State != status.Held {
		t.Errorf("paused: %+v", no)
	}
}

// TestABudgetThatIsSpent parks the agent until the period ends, tells its session once,
// and is not ended by a person who resumes it.
func TestABudgetThatIsSpent(t *testing.T) {
	t.Parallel()
	a := fresh()
	a.Begin("", noon)
	a.Overspends(Parking{Until: noon.Add(time.Hour), Reason: "it is spent"}, noon) // before there is a session to tell
	a.Launched("s", Runs, noon)
	a.Overspends(Parking{Until: noon.Add(time.Hour), Reason: "more is spent"}, noon)
	if o := a.Orders(); len(o) != 1 || o[0].Finish != "it is spent" || o[0].Stop {
		t.Errorf("orders: %+v", o)
	}
	a.Ended(End{Outcome: session.Outcome{Why: hook.EndFinished}}, noon, 0)
	a.Resume(noon)
	if r := a.Standing(noon); r.State != status.Parked || r.Text != "more is spent" || !r.Until.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", r)
	}
	if at := a.Next(); !at.Equal(noon.Add(time.Hour)) {
		t.Errorf("it is woken at %v", at)
	}
	a.Ring(noon.Add(time.Hour))
	if r := a.Standing(noon.Add(time.Hour)); r.State != status.Idle {
		t.Errorf("after the period: %+v", r)
	}
	a.Overspends(Parking{Until: noon.Add(2 * time.Hour), Reason: "it is spent again"}, noon.Add(time.Hour))
	a.WithinBudget(noon.Add(time.Hour))
	if a.Overspent(noon.Add(time.Hour)) {
		t.Error("more is allowed, and it waits")
	}
	kinds := 0
	for _, e := range a.Notes() {
		if e.Kind == journal.OverBudget {
			kinds++
		}
	}
	if kinds != 2 {
		t.Errorf("the journal says %d times that a budget is spent", kinds)
	}
}

// TestABriefTryDoesNotRestartTheTimeThatAnAgentIsHeld: status said that it was held for
// seconds, because a session had just been tried.
func TestABriefTryDoesNotRestartTheTimeThatAnAgentIsHeld(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tried time.Duration
		then  string
		anew  bool
	}{
		"tried for a moment":  {5 * time.Second, "the login is refused", false},
		"another reason":      {5 * time.Second, "hooks are off", true},
		"it worked meanwhile": {time.Minute, "the login is refused", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, now := fresh(), noon
			settled := func(d time.Duration, happens func()) {
				now = now.Add(d)
				happens()
				a.Settle(now)
			}
			settled(0, func() { a.Parks(Parking{Person: true, Reason: "the login is refused"}, now) })
			held := now
			settled(time.Hour, func() { a.follow(next{state: status.Idle}) })
			settled(0, func() { a.Begin("", now) })
			settled(0, func() { a.Launched("s", Runs, now) })
			settled(tt.tried, func() { a.Ended(End{Left: true, Parks: &Parking{Person: true, Reason: tt.then}}, now, 0) })
			if d := a.Describe(); d.State != status.Held || d.Since.Equal(held) == tt.anew {
				t.Errorf("%s since %s, it was held at %s, tried at %s", d.State, d.Since, held, now.Add(-tt.tried))
			}
		})
	}
}
