package e2e

import (
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/promise"
	"heartbeat/internal/simulate/script"
)

// flight is the entry in flight, or nil.
func (f *fleet) flight() *promise.Queued {
	f.t.Helper()
	for _, e := range f.queueOf("a") {
		if e.InFlight() {
			return &e
		}
	}
	return nil
}

func started(f *promise.Queued) bool { return f != nil && f.State == "started" }

// TestCancelATurn: the client is ended in the middle of a tool and in the middle of
// an answer. The prompt is a dead letter or the last in the queue, what is behind it
// goes on in another session, and nothing is left of the first.
func TestCancelATurn(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]script.Step{
		"a tool runs":       {bash("tail -f /dev/null"), say("never")},
		"the model answers": {bash("true"), think(5 * time.Minute), say("never")},
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, persist)
				f.turns(turn{match: "a long one", times: 2, steps: steps})
				f.send("a long one")
				f.send("the next one")
				f.start()
				f.Until("a tool was called", func() bool { return started(f.flight()) })
				first := f.session()
				if out := f.must("", "cancel", "a", "--retry"); !strings.Contains(out, "at the end of its queue") {
					t.Errorf("cancel --retry: %s", out)
				}
				f.Until("it is given again, behind the next one", func() bool {
					return len(f.outbox()) == 1 && started(f.flight())
				})
				if again := f.flight(); again.Attempt != 1 || again.Prompt != "a long one" {
					t.Errorf("given again as %+v", again)
				}
				if out := f.must("", "cancel", "a"); !strings.Contains(out, "a: cancelled; heartbeat") {
					t.Errorf("cancel: %s", out)
				}
				if dead := f.dead(); len(dead) != 1 || dead[0].Reason != promise.ByCancel {
					t.Errorf("dead letters: %+v", dead)
				}
				f.send("the last one")
				f.Until("the last one is done", func() bool { return len(f.outbox()) == 2 })
				f.phase(hook.Waiting)
				if r := f.session(); r.Session == first.Session {
					t.Error("the session that was cancelled goes on")
				}
				f.must("", "restart", "a")
				f.Until("the session has ended", func() bool { return f.session().Phase == hook.Ended })
			})
		})
	}
}
