package orchestrator

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// TestWhatCannotBeComparedAtASessionsEndIsComparedBeforeTheNext: its mark was dropped, or
// the next session's took its place, and the forged record counted as done for ever.
func TestWhatCannotBeComparedAtASessionsEndIsComparedBeforeTheNext(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"its scheduler goes on": false, "another scheduler takes over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.proves(config.NewUntil("make", "test"), passing)
				demands := filepath.Join(r.dir, "state", "demands")
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				r.set("a", forges(func(*fakeSession) { // from now on nobody can tell what has to be proven
					must(os.WriteFile(demands, nil, 0o600))
				}))
				r.send("a", 2)
				stop := r.run()
				defer func() { stop() }()
				r.sleep(10 * time.Second)
				if n := len(r.started("a")); n != 1 {
					t.Errorf("%d sessions began before what the first has left was compared", n)
				}
				if s := r.state("a"); s.State != status.BackingOff {
					t.Errorf("%s (%s)", s.State, s.Reason)
				}
				if killed {
					stop()
					stop = r.run()
					r.sleep(10 * time.Second)
				}
				r.set("a", claims(time.Minute))
				must(os.Remove(demands))
				r.sleep(2 * time.Hour)
				dead := r.dead("a")
				if len(dead) != 1 || dead[0].Reason != inbox.Forged || len(r.journal(journal.Forged)) != 1 {
					t.Errorf("%+v; told %d times", dead, len(r.journal(journal.Forged)))
				}
				if n := len(r.started("a")); n < 2 {
					t.Errorf("%d sessions", n)
				}
			})
		})
	}
}
