package orchestrator

import (
	"context"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
)

// However a session ends that was offered an entry or took it, and has run no
// tool: the next one is told of a repeat only when it may be one.
func TestTheNextSessionIsWarnedOnlyOfWhatMayBeARepeat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state   inbox.State
		outcome session.Outcome
		marked  bool
	}{
		"a dialog kept it from starting":  {inbox.Offered, session.Outcome{Why: hook.EndStartTimeout, Untaken: true}, false},
		"it did not start, who knows why": {inbox.Offered, session.Outcome{Why: hook.EndStartTimeout}, true},
		"the client refused its flags":    {inbox.Offered, session.Outcome{Why: hook.EndExited, ExitCode: 1, Untaken: true}, false},
		"killed as it started":            {inbox.Offered, session.Outcome{Why: hook.EndCrashed}, true},
		"an overloaded service":           {inbox.Taken, session.Outcome{Why: hook.EndAPIFailure, Detail: "server_error", Bound: true}, false},
		"a usage limit":                   {inbox.Taken, session.Outcome{Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true}, false},
		"a request that is refused":       {inbox.Taken, session.Outcome{Why: hook.EndAPIFailure, Detail: "invalid_request", Bound: true}, false},
		"a limit after a tool":            {inbox.Started, session.Outcome{Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true}, true},
		"a crash in the turn":             {inbox.Taken, session.Outcome{Why: hook.EndCrashed, Bound: true}, true},
		"a time-out":                      {inbox.Taken, session.Outcome{Why: hook.EndTimeout, Bound: true}, true},
		"a stop":                          {inbox.Taken, session.Outcome{Why: hook.EndFinished, Bound: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.agent("a").OnOrphan = inbox.Retry
				var prompts []string
				r.set("a", func(f *fakeSession) session.Outcome {
					time.Sleep(boot)
					opened, err := inbox.Open(inbox.Place{Inbox: f.spec.Inbox, Home: f.spec.Home})
					if err != nil {
						t.Error(err)
						return c.outcome
					}
					defer opened.Close()
					q, err := opened.Lock(context.Background())
					if err != nil {
						t.Error(err)
						return c.outcome
					}
					defer q.Unlock()
					e, err := q.Next()
					if err != nil {
						return session.Outcome{Why: hook.EndDrained, Bound: true}
					}
					flight, err := q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session})
					if err != nil {
						t.Error(err)
						return c.outcome
					}
					prompts = append(prompts, handover.PromptFor(flight.Given()))
					first := len(prompts) == 1
					if first && c.state == inbox.Offered {
						return c.outcome
					}
					if _, err := q.Advance(c.state, ""); err != nil {
						t.Error(err)
					}
					if first {
						return c.outcome
					}
					if _, err := q.Acknowledge(inbox.Acknowledgement{Now: time.Now()}); err != nil {
						t.Error(err)
					}
					f.acknowledged++
					return session.Outcome{Why: hook.EndDrained, Bound: true}
				})
				r.send("a", 1)
				stop := r.run()
				defer stop()
				r.sleep(2 * time.Hour)
				if len(prompts) != 2 || strings.Contains(prompts[0], "[heartbeat:") || strings.Contains(prompts[1], "[heartbeat: attempt 2") != c.marked {
					t.Errorf("given as %q, want the second marked: %t", prompts, c.marked)
				}
			})
		})
	}
}
