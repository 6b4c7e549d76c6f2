package orchestrator

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
)

func (r *rig) backlog(agent string) Backlog {
	r.t.Helper()
	for _, b := range r.s.Backlog() {
		if b.Agent == agent {
			return b
		}
	}
	r.t.Fatalf("no backlog of %s", agent)
	return Backlog{}
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "held", "idle")
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

		// What others do shows at the next look, and a look is good for a while.
		dead := inbox.DeadLetterFile(r.agent("idle").Inbox)
		if err := os.WriteFile(dead, []byte(`{"entry_id":"x","raw_line":"y","reason":"poison"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.send("held", 1)
		if b := r.backlog("idle"); b.Dead != 0 {
			t.Errorf("the disk was looked at again at once: %+v", b)
		}
		r.sleep(backlogFor)
		if b := r.backlog("idle"); b.Dead != 1 {
			t.Errorf("a dead letter: %+v", b)
		}
		if b := r.backlog("held"); b.Queued != 4 || !b.Since.Equal(seen) {
			t.Errorf("the same entry is still the first: %+v", b)
		}
		if err := os.Remove(dead); err != nil {
			t.Fatal(err)
		}
		r.sleep(backlogFor)
		if b := r.backlog("idle"); b.Dead != 0 {
			t.Errorf("the dead letters are gone: %+v", b)
		}
	})
}

// BenchmarkBacklog is a look at 10,000 agents of which one in a hundred has
// something queued.
func BenchmarkBacklog(b *testing.B) {
	dir := b.TempDir()
	r := &rig{dir: dir}
	s := &Scheduler{}
	for i := range 10_000 {
		cfg := r.declare(fmt.Sprintf("agent-%d", i))
		if err := os.MkdirAll(cfg.Home, 0o700); err != nil {
			b.Fatal(err)
		}
		a := newAgent(cfg)
		if i%100 == 0 {
			a.state = Waiting
			if err := os.WriteFile(cfg.Inbox, []byte("a prompt\n"), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		s.agents = append(s.agents, a)
	}
	for b.Loop() {
		s.backlogs.at = time.Time{}
		if n := len(s.Backlog()); n != 10_000 {
			b.Fatal(n)
		}
	}
}
