package agent

import (
	"testing"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// TestASessionThatCameToNothingClearsNothing: that a server of MCP did not connect, or that tools
// were refused, was forgotten when the next session failed before it got that far.
func TestASessionThatCameToNothingClearsNothing(t *testing.T) {
	t.Parallel()
	ended := func(a *Agent, o session.Outcome) status.AgentState {
		a.Begin("", noon)
		a.Launched("s", Runs, noon)
		a.Ended(End{Outcome: o}, noon, 0)
		return a.Describe()
	}
	servers, denied := []session.Server{{Name: "mail", Why: "x"}}, []session.Denied{{Rule: "Bash", Times: 1}}
	for what, tt := range map[string]struct {
		next   session.Outcome
		clears bool
	}{
		"a start that timed out": {session.Outcome{Why: hook.EndStartTimeout}, false},
		"a service that failed":  {session.Outcome{Why: hook.EndAPIFailure, Detail: "server_error", Bound: true}, false},
		"a crash":                {session.Outcome{Why: hook.EndCrashed}, false},
		"one that has done work": {session.Outcome{Why: hook.EndDrained, Acknowledged: 1}, true},
	} {
		a := New(&config.Agent{Name: "a", MaxRestarts: 100}, noon)
		if d := ended(a, session.Outcome{Why: hook.EndDrained, Acknowledged: 1, Servers: servers, Denied: denied}); len(d.Servers) != 1 || len(d.Denied) != 1 {
			t.Fatalf("%s: at first %+v", what, d)
		}
		d := ended(a, tt.next)
		next := New(&config.Agent{Name: "a"}, noon)
		next.Inherit(d)
		for who, d := range map[string]status.AgentState{"this run": d, "the next one": next.Describe()} {
			if (len(d.Servers) == 0) != tt.clears || (len(d.Denied) == 0) != tt.clears {
				t.Errorf("%s: %s knows %+v, %+v", what, who, d.Servers, d.Denied)
			}
		}
	}
}
