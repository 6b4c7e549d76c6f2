package orchestrator

import (
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

func (r *rig) backlog(agent string) status.Backlog {
	r.t.Helper()
	for _, b := range r.s.Backlog() {
		if b.Agent == agent {
			return b
		}
	}
	r.t.Fatalf("no backlog of %s", agent)
	return status.Backlog{}
}

// A queue is looked into when its agent may have something queued.
func TestBacklog(t *testing.T) {
	t.Parallel()
	inBubble(t, "held idle", func(t *testing.T, r *rig) {
		r.fleet.Agents[0].MaxRestarts = 0
		r.set("held", ends(session.Outcome{Why: hook.EndCrashed, Bound: true}))
		r.send("held", 3)
		stop := r.run()
		defer stop()
		r.sleep(10 * time.Second)
		r.want("held", Held)
		seen := time.Now()
		if b := r.backlog("held"); b.Queued != 3 || !b.Since.Equal(seen) || b.Dead != 0 || b.Problem != "" {
			t.Errorf("held: %+v", b)
		}
		if b := r.backlog("idle"); b.Queued != 0 || !b.Since.IsZero() || b.Dead != 0 {
			t.Errorf("idle: %+v", b)
		}
		r.send("held", 1)
		r.sleep(status.BacklogFor)
		if b := r.backlog("held"); b.Queued != 4 || !b.Since.Equal(seen) {
			t.Errorf("the same entry is still the first: %+v", b)
		}
	})
}
