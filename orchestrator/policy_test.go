package orchestrator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/session"
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
		state    State
		delay    time.Duration // without jitter (roll 0: half)
		failures int
		left     bool // work is left in the queue
	}{
		{name: "drained", outcome: session.Outcome{Why: hook.EndDrained, Acknowledged: 3}, state: Idle},
		{
			name: "drained without doing anything while work is left is a failure, or it would spin", left: true,
			outcome: session.Outcome{Why: hook.EndDrained}, state: BackingOff, delay: time.Second, failures: 1,
		},
		{
			name:    "drained without doing anything, and nothing is left",
			outcome: session.Outcome{Why: hook.EndDrained}, state: Idle,
		},
		{name: "told to finish", outcome: session.Outcome{Why: hook.EndFinished}, state: Idle, left: true},
		{name: "shut down", outcome: session.Outcome{Why: hook.EndShutdown}, state: Idle},
		{name: "first crash", outcome: session.Outcome{Why: hook.EndCrashed}, state: BackingOff, delay: time.Second, failures: 1},
		{
			name: "second crash in a row", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 1, restarts: three[2:]}, state: BackingOff, delay: 2 * time.Second, failures: 2,
		},
		{
			name: "a crash after a good session starts anew", outcome: session.Outcome{Why: hook.EndCrashed, Acknowledged: 1},
			before: history{failures: 5, restarts: three}, state: BackingOff, delay: time.Second, failures: 1,
		},
		{
			name: "too many in the window", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 3, restarts: three}, state: Held, failures: 4,
		},
		{
			name: "a client that calls none of our hooks holds at once", left: true,
			outcome: session.Outcome{Why: hook.EndNoHooks, Unwatched: true}, state: Held,
		},
		{
			name: "old ones do not count", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 3, restarts: []spent{{at: now.Add(-31 * time.Minute)}, three[1], three[2]}},
			state:  BackingOff, delay: 8 * time.Second, failures: 4,
		},
		{
			name: "a server error never holds", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "server_error"},
			before: history{failures: 3, restarts: three}, state: BackingOff, delay: 8 * time.Second, failures: 4,
		},
		{
			name: "a machine without room never holds", outcome: session.Outcome{Why: hook.EndExited, NoRoom: true},
			before: history{failures: 9, restarts: three}, state: BackingOff, delay: backoffMax / 2, failures: 10,
		},
		{
			name: "nor does an overloaded service", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "overloaded"},
			before: history{failures: 3, restarts: three, refusals: three}, state: BackingOff, delay: 8 * time.Second, failures: 4,
		},
		{
			name: "refused requests do hold", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "invalid_request"},
			before: history{failures: 3, refusals: three}, state: Held, failures: 4,
		},
		{
			name: "what cannot be told holds, too", outcome: session.Outcome{Why: hook.EndAPIFailure, Detail: "unknown"},
			before: history{failures: 3, refusals: three}, state: Held, failures: 4,
		},
		{
			name: "refused requests do not count as restarts", outcome: session.Outcome{Why: hook.EndCrashed},
			before: history{failures: 3, refusals: three}, state: BackingOff, delay: 8 * time.Second, failures: 4,
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
		if got := counts(session.Outcome{Why: why, Bound: true}); got != want {
			t.Errorf("counts(%s) = %v, want %v", why, got, want)
		}
		if counts(session.Outcome{Why: why}) {
			t.Errorf("counts(%s) without a bound client", why)
		}
	}
}

// TestWhatOnlyAPersonCanHelpHoldsAtOnce: an agent whose client would run without
// our hooks was tried six times, with as many paid turns.
func TestWhatOnlyAPersonCanHelpHoldsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		var blocked atomic.Bool
		blocked.Store(true)
		r.opt.Prepare = func(a *config.Agent) (launch.Prepared, error) {
			if a.Name == "a" && blocked.Load() {
				return launch.Prepared{}, fmt.Errorf("x says disableAllHooks: %w", launch.ErrNeedsPerson)
			}
			return launch.Prepared{}, nil
		}
		r.send("a", 1)
		r.send("b", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		r.want("a", Held)
		if a := r.state("a"); !strings.Contains(a.Reason.String(), "disableAllHooks") || len(r.started("a")) != 0 {
			t.Errorf("%+v, started %v", a, r.started("a"))
		}
		if b := r.state("b"); b.Acknowledged != 1 {
			t.Errorf("another agent: %+v", b)
		}
		blocked.Store(false)
		if _, err := r.s.Resume("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("resumed: %+v", a)
		}
	})
}

// TestWhatPassesHoldsNoAgent: after 15 seconds of a full disk, or when another
// apply had the lock for long, each agent that had work was held until somebody
// came to resume it.
func TestWhatPassesHoldsNoAgent(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, context.DeadlineExceeded, launch.ErrPasses} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			holdsNobody(t, cause)
		})
	}
}

func holdsNobody(t *testing.T, cause error) {
	t.Helper()
	r := newRig(t, "a")
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		var full atomic.Bool
		full.Store(true)
		r.opt.Prepare = func(*config.Agent) (launch.Prepared, error) {
			if full.Load() {
				return launch.Prepared{}, fmt.Errorf("cannot wire: %w", cause)
			}
			return launch.Prepared{}, nil
		}
		r.agent("a").MaxRestarts = 3
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		r.want("a", BackingOff)
		full.Store(false)
		r.sleep(backoffMax + time.Minute)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("%+v, want its entry done", a)
		}
	})
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
		if got := counts(o); got != want {
			t.Errorf("counts(%s) = %v, want %v", kind, got, want)
		}
	}
}
