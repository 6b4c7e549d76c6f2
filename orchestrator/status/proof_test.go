package status

import (
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
)

// TestProofNotes: each state of a check has words of its own.
func TestProofNotes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	proof := func(s ProofState, until time.Duration) Agent {
		p := &Proof{Delivery: "d", State: s, Since: now.Add(-time.Minute), Iteration: 3, Most: 10, Why: "2 tests fail"}
		if until != 0 {
			p.Until = now.Add(until)
		}
		return Agent{AgentState: AgentState{Agent: "a", State: Running, Proof: p}}
	}
	seen := map[string]bool{}
	for _, s := range ProofStates() {
		note := proof(s, 0).Note(now)
		if s != CheckTrouble && (note == "" || seen[note]) {
			t.Errorf("%s: %q", s, note)
		}
		seen[note] = true
	}
	for want, a := range map[string]Agent{
		"iteration 3 of 10: its check runs, last check: 2 tests fail (1m)":                                                                    proof(CheckRuns, 0),
		"iteration 3 of 10: its check waits for answers to what the agent has asked (1m)":                                                     proof(CheckAsked, time.Minute),
		"iteration 3 of 10: 2 tests fail; again in 10s":                                                                                       proof(CheckAgain, 10*time.Second),
		"iteration 3 of 10 did not pass its check: 2 tests fail; the agent claims to be done within seconds, so the next iteration waits 30s": proof(CheckPaces, 30*time.Second),
		"iteration 2 of 10, last check: 2 tests fail": {
			AgentState: AgentState{State: Running, Phase: hook.Turn},
			InFlight:   &inbox.InFlight{Proving: inbox.Proving{Iteration: 2, Most: 10, Output: "FAIL\n2 tests fail\n"}},
		},
		"": {AgentState: AgentState{State: Running, Phase: hook.Turn}, InFlight: &inbox.InFlight{Proving: inbox.Proving{Iteration: 1}}},
	} {
		if got := a.Note(now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if Of(3, 0) != "3" || Of(3, 10) != "3 of 10" {
		t.Error(Of(3, 0), Of(3, 10))
	}
}

func TestGist(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"": "", "a\n b \n\n": "b", "FAIL\n2 tests fail": "2 tests fail",
		"2 tests fail\nmake[1]: *** [Makefile:2: unit] Error 1\nmake[1]: Leaving directory '/a'\nmake: *** [Makefile:4: test] Error 2\n": "2 tests fail",
		"make: *** No rule to make target 'test'.  Stop.\n": "make: *** No rule to make target 'test'.  Stop.",
		"make: 'test' is up to date.\n":                     "make: 'test' is up to date.",
	} {
		if got := Gist(output); got != want {
			t.Errorf("of %q: %q, want %q", output, got, want)
		}
	}
}
