package agent

import (
	"testing"

	"heartbeat/config"
	"heartbeat/orchestrator/status"
)

// TestABadClient: with client-drift: hold nothing is started until another client is
// there or a person says so, which holds for that client alone; with warn people are
// told.
func TestABadClient(t *testing.T) {
	t.Parallel()
	other := Client{ID: "worse", Name: "bad 3", Breaks: "more"}
	for name, tt := range map[string]struct {
		happens func(a *Agent)
		starts  bool
		next    bool // with another bad client
	}{
		"nothing":            {func(*Agent) {}, false, false},
		"it is still there":  {func(a *Agent) { a.FindsClient("bad", noon) }, false, false},
		"another is there":   {func(a *Agent) { a.FindsClient("good", noon) }, true, false},
		"a person resumes":   {func(a *Agent) { a.Resume(noon); a.Meets(badClient, noon) }, true, false},
		"a reload has other": {func(a *Agent) { def := *a.def; def.ClientDrift = config.DriftWarns; a.Redefine(&def); a.Adopt(noon) }, true, true},
	} {
		a := fresh()
		a.Begin("", noon)
		a.Probes(badClient)
		if r := a.Standing(noon); r.State != status.Idle || r.Text != "bad 2 is new here: it is tried offline for up to a minute; nothing is paid" || !r.GoesOn || a.Wants(noon) {
			t.Errorf("%s: while it is probed: %+v", name, r)
		}
		a.Probed(badClient, noon)
		a.Settle(noon)
		if r := a.Standing(noon); r.State != status.Held || r.Fix != "go back" || !r.GoesOn {
			t.Errorf("%s: %+v", name, r)
		}
		if tt.happens(a); a.Wants(noon) != tt.starts {
			t.Errorf("%s: starts %v", name, a.Wants(noon))
		}
		if a.Meets(other, noon) != tt.next {
			t.Errorf("%s: with another bad client it starts: %v", name, !tt.next)
		}
		if d := a.Describe(); d.Client == nil || d.Client.Breaks != "more" {
			t.Errorf("%s: readers are told %+v", name, d.Client)
		}
	}
}
