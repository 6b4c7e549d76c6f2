package agent

import (
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	rule := restartRule{max: 3, window: 30 * time.Minute}
	three := []spent{{at: now.Add(-20 * time.Minute)}, {at: now.Add(-10 * time.Minute)}, {at: now.Add(-time.Minute)}}
	tests := []struct {
		name     string
		outcome  session.Outcome
		before   history
		state    status.State
		delay    time.Duration // without jitter (roll 0: half)
		failures int
		left     bool // work is left in the queue
	}{
		{name: "drained", outcome: session.Outcome{Why: hook.EndDrained, Acknowledged: 3}, state: status.Idle},
		{
			name: "drained without doing anything while work is left is a failure, or it would spin", left: true,
			outcome: session.Outcome{Why: hook.EndDrained}, state: status.BackingOff, delay: time.Second, failures: 1,
		},
		{
			name:    "drained without doing anything, and nothing is left",
			outcome: session.Outcome{Why: hook.EndDrained}, state: status.Idle,
		},
		{name: "told to finish", outcome: session.Outcome{Why: hook.EndFinished}, state: status.Idle, left: true},
		{name: "shut down", outcome: session.Outcome{Why: hook.EndShutdown}, state: status.Idle},
		{name: "first crash", outcome: session.Outcome{Why: hook.EndCrashed}, state: status.BackingOff, delay: time.Second, failures: 1},
		{
			name: "second crash in a row", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 1, restarts: three[2:]}, state: status.BackingOff, delay: 2 * time.Second, failures: 2,
		},
		{
			name: "a crash after a good session starts anew", outcome: session.Outcome{Why: hook.EndCrashed, Acknowledged: 1},
			before: history{failures: 5, restarts: three}, state: status.BackingOff, delay: time.Second, failures: 1,
		},
		{
			name: "too many in the window", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 3, restarts: three}, state: status.Held, failures: 4,
		},
		{
			name: "a client that calls none of our hooks holds at once", left: true,
			outcome: session.Outcome{Why: hook.EndNoHooks, Unwatched: true}, state: status.Held,
		},
		{
			name: "old ones do not count", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 3, restarts: []spent{{at: now.Add(-31 * time.Minute)}, three[1], three[2]}},
			state:  status.BackingOff, delay: 8 * time.Second, failures: 4,
		},
		{
			name: "a server error never holds", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "server_error"},
			before: history{failures: 3, restarts: three}, state: status.BackingOff, delay: 8 * time.Second, failures: 4,
		},
		{
			name: "a machine without room never holds", outcome: session.Outcome{Why: hook.EndExited, NoRoom: true},
			before: history{failures: 9, restarts: three}, state: status.BackingOff, delay: backoffMax / 2, failures: 10,
		},
		{
			name: "nor does an overloaded service", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "overloaded"},
			before: history{failures: 3, restarts: three, refusals: three}, state: status.BackingOff, delay: 8 * time.Second, failures: 4,
		},
		{
			name: "refused requests do hold", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "invalid_request"},
			before: history{failures: 3, refusals: three}, state: status.Held, failures: 4,
		},
		{
			name: "what cannot be told holds, too", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "unknown"},
			before: history{failures: 3, refusals: three}, state: status.Held, failures: 4,
		},
		{
			name: "refused requests do not count as restarts", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 3, refusals: three}, state: status.BackingOff, delay: 8 * time.Second, failures: 4,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, h := after(tt.outcome, tt.left, tt.before, rule, now, 0)
			if n.state != tt.state || h.failures != tt.failures {
				t.Errorf("after = %s with %d failures, want %s with %d", n.state, h.failures, tt.state, tt.failures)
			}
			var delay time.Duration
			if !n.until.IsZero() {
				delay = n.until.Sub(now)
			}
			if delay != tt.delay {
				t.Errorf("delay %s, want %s", delay, tt.delay)
			}
			if n.reason == "" {
				t.Error("no reason for the operator")
			}
		})
	}
}

func TestCountsTowardMaxAttempts(t *testing.T) {
	t.Parallel()
	for why, want := range map[hook.End]bool{
		hook.EndCrashed: true, hook.EndTimeout: true, hook.EndUnattended: true,
		hook.EndDialog: false, hook.EndStartTimeout: false, hook.EndFinished: false, hook.EndShutdown: false,
	} {
		if got := Counts(session.Outcome{Why: why, Bound: true}); got != want {
			t.Errorf("Counts(%s) = %v, want %v", why, got, want)
		}
		if Counts(session.Outcome{Why: why}) {
			t.Errorf("Counts(%s) without a bound client", why)
		}
	}
}

func TestOnlyARefusedRequestOfItsOwnUsesUpAnAttempt(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"invalid_request": true, "max_output_tokens": true,
		"server_error": false, "overloaded": false, "rate_limit": false, "authentication_failed": false,
		"oauth_org_not_allowed": false, "account_on_hold": false, "verification_required": false, "billing_error": false,
		"cloud_credential_error": false, "model_not_found": false, "unknown": false, "": false, "of a later client": false,
	} {
		o := session.Outcome{Why: hook.EndAPIFailure, Detail: kind, Bound: true}
		if got := Counts(o); got != want {
			t.Errorf("Counts(%s) = %v, want %v", kind, got, want)
		}
	}
}

// TestWhatASessionDiedOf: an entry in work is to blame, as far as can be told, only
// for a session that had begun and was not let go, ended for another reason or lost.
func TestWhatASessionDiedOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outcome session.Outcome
		want    bool
	}{
		{session.Outcome{Why: hook.EndCrashed, Bound: true, Delivery: "d"}, true},
		{session.Outcome{Why: hook.EndExited, ExitCode: 1, Bound: true, Delivery: "d"}, true},
		{session.Outcome{Why: hook.EndOutOfMemory, Bound: true, Delivery: "d"}, true},
		{session.Outcome{Why: hook.EndStalled, Bound: true, Delivery: "d"}, true},
		{session.Outcome{Why: hook.EndTimeout, Bound: true, Delivery: "d"}, true},
		{session.Outcome{Why: hook.EndUnattended, Bound: true, Delivery: "d"}, true},
		{session.Outcome{Why: hook.EndRunaway, Bound: true, Delivery: "d"}, true},
		{session.Outcome{Why: hook.EndAPIFailure, Detail: "invalid_request", Bound: true, Delivery: "d"}, true},

		{session.Outcome{Why: hook.EndAPIFailure, Detail: "server_error", Bound: true, Delivery: "d"}, false},
		{session.Outcome{Why: hook.EndCrashed, Bound: true}, false},                     // it was handed nothing
		{session.Outcome{Why: hook.EndCrashed, Delivery: "d"}, false},                   // it never began
		{session.Outcome{Why: hook.EndStartTimeout, Bound: true, Delivery: "d"}, false}, // a dialog
		{session.Outcome{Why: hook.EndDialog, Bound: true, Delivery: "d"}, false},       // the same
		{session.Outcome{Why: hook.EndNoHooks, Bound: true, Delivery: "d"}, false},      // nobody can tell
		{session.Outcome{Why: hook.EndLost, Bound: true, Delivery: "d"}, false},         // its directory
		{session.Outcome{Why: hook.EndReleased, Bound: true, Delivery: "d"}, false},     // it was let go
		{session.Outcome{Why: hook.EndDrained, Bound: true, Delivery: "d"}, false},      // the same
		{session.Outcome{Why: hook.EndShutdown, Bound: true, Delivery: "d"}, false},     // it was told to
		{session.Outcome{Why: hook.EndFinished, Bound: true, Delivery: "d"}, false},     // the same
		{session.Outcome{Why: hook.EndOverBudget, Bound: true, Delivery: "d"}, false},   // it is filed as that
		{session.Outcome{Why: hook.EndAPIFailure, Bound: true, Delivery: "d"}, false},   // of an unknown kind
	} {
		if got := Fatal(tt.outcome); got != tt.want {
			t.Errorf("Fatal(%+v) = %v", tt.outcome, got)
		}
	}
}

// TestEntriesInARowThatUseUpTheirAttemptsHoldTheAgent: with failures further apart than
// restart-window a client that is broken had everything filed that is queued.
func TestEntriesInARowThatUseUpTheirAttemptsHoldTheAgent(t *testing.T) {
	t.Parallel()
	rule, o := restartRule{max: 5, window: 30 * time.Minute}, session.Outcome{Why: hook.EndStalled, Bound: true}
	for name, tt := range map[string]struct {
		before history
		n      next
		want   status.State
	}{
		"the first":                   {history{failures: 5}, next{state: status.BackingOff}, status.BackingOff},
		"the second":                  {history{failures: 10, poisons: 1}, next{state: status.BackingOff}, status.BackingOff},
		"the third":                   {history{failures: 15, poisons: 2}, next{state: status.BackingOff}, status.Held},
		"with a failure for each":     {history{failures: 3, poisons: 2}, next{state: status.BackingOff}, status.BackingOff},
		"of an agent that is held":    {history{failures: 15, poisons: 2}, next{state: status.Held}, status.Held},
		"the third is not the end":    {history{failures: 5, poisons: 2}, next{state: status.BackingOff}, status.BackingOff},
		"after as many as may follow": {history{failures: 6, poisons: 2}, next{state: status.BackingOff}, status.Held},
	} {
		n, h := exhausted(o, tt.n, tt.before, rule)
		if n.state != tt.want || h.poisons != tt.before.poisons+1 || tt.n.state != tt.want && (n.reason == "" || !n.lasts) {
			t.Errorf("%s: %+v, %+v", name, n, h)
		}
	}
}
