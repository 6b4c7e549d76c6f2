package status

import (
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/queue"
)

// TestHeadway: what is done and what is left add up, also between two counts.
func TestHeadway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := declare(t, dir, "a")
		put(t, a.Inbox, "one\ntwo\nthree\n")
		if err := queue.Settle(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		var h Headway
		look := func(says AgentState, want string) {
			t.Helper()
			says.Agent = "a"
			if h.Look([]*config.Agent{a}, []AgentState{says}); h.Text != want {
				t.Errorf("%q, want %q", h.Text, want)
			}
		}
		look(AgentState{State: Waiting}, "0 of 3 prompts; 1 waiting")
		put(t, a.Inbox, "four\n")
		look(AgentState{State: Running, Acknowledged: 1, Work: &hook.Work{}}, "1 of 3 prompts; 1 running")
		look(AgentState{State: Running, Acknowledged: 2, DeadLettered: 1, Work: &hook.Work{}}, "3 of 4 prompts; 1 running")
		time.Sleep(BacklogFor)
		put(t, a.Inbox, "five\n") // the queue still has all of them: nothing took one in this test
		look(AgentState{State: Running}, "0 of 5 prompts; 1 running")
		look(AgentState{State: Idle, Acknowledged: 5}, "5 of 5 prompts; 1 idle")
		vain := &Proof{State: CheckTrouble, Vain: &Vain{As: CheckTrouble, Since: time.Now(), Why: "make is not found in PATH"}}
		look(AgentState{State: Checking, Acknowledged: 5, Proof: vain}, "5 of 5 prompts; 1 checking; waits for a, whose check gives no answer: make is not found in PATH")
		time.Sleep(BacklogFor) // its client is new, and is probed: it was "0 of 0 prompts"
		look(AgentState{State: Idle, GoesOn: true}, "0 of 5 prompts; 1 idle")
		vain.Vain.As = CheckAgain // it has answered: later
		look(AgentState{State: Checking, Acknowledged: 5, Proof: vain}, "5 of 5 prompts; 1 checking")
	})
}
