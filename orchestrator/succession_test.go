package orchestrator

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
	"heartbeat/hook/flock"
)

// An agent that moves, or is renamed, comes when the directory or the name is
// free.
func TestReloadMovesAndRenames(t *testing.T) {
	t.Parallel()
	inBubble(t, "moves old", func(t *testing.T, r *rig) {
		r.send("moves", 1)
		r.send("old", 3)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry/2)
		moved := r.declare("elsewhere")
		moved.Name = "moves"
		renamed := r.declare("old")
		renamed.Name = "new"
		plan, err := r.s.Reload(r.with(moved, renamed))
		if err != nil {
			t.Fatal(err)
		}
		want := &Plan{Added: []string{"new"}, Removed: []string{"old"}, Changed: []string{"moves"}}
		if diff := cmp.Diff(want, plan); diff != "" {
			t.Error(diff)
		}
		r.send("elsewhere", 1)
		r.sleep(3 * time.Minute)
		for name, done := range map[string]int{"moves": 1, "new": 2} {
			if a := r.state(name); a.Acknowledged != done || a.State != Idle {
				t.Errorf("%s: %+v, want %d done", name, a, done)
			}
		}
		if flock.Held(r.declare("moves").Dir) || !flock.Held(moved.Dir) {
			t.Error("the directories' locks do not follow")
		}
	})
}

// TestAReloadRightAfterAnother: an agent that was being made ready was in no
// list, so that the next reload could not lock its directory, or forgot it.
func TestAReloadRightAfterAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		both := r.with(r.declare("a"), r.declare("b"))
		for i := range 20 {
			if _, err := r.s.Reload(both); err != nil {
				t.Fatal(err)
			}
			plan, err := r.s.Reload(both)
			if err != nil || !plan.Empty() {
				t.Fatalf("%d: the second reload: %v, %v", i, plan, err)
			}
			if _, err := r.s.Reload(r.with(r.declare("a"))); err != nil {
				t.Fatal(err)
			}
			r.sleep(time.Second)
			if all := r.s.Snapshot(); len(all) != 1 {
				t.Fatalf("%d: agents %+v, want the one that is declared", i, all)
			}
			if flock.Held(r.declare("b").Dir) {
				t.Fatalf("%d: the directory of a removed agent is locked", i)
			}
		}
		if _, err := r.s.Reload(both); err != nil {
			t.Fatal(err)
		}
		changed := r.declare("b")
		changed.Command = []string{"other"}
		changed.Triggers = []config.Trigger{cron(t, "hourly", "0 * * * *")}
		if _, err := r.s.Reload(r.with(r.declare("a"), changed)); err != nil {
			t.Fatal(err)
		}
		r.sleep(2*time.Hour + 5*time.Minute)
		if b := r.state("b"); b.Acknowledged != 2 {
			t.Errorf("%+v, want two fires of the definition that came while it was made ready", b)
		}
	})
}

// TestAReloadReplacesOneThatWaits: it was refused, and with --watch-config the
// new version of the file was then never loaded.
func TestAReloadReplacesOneThatWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, "moves stays", func(t *testing.T, r *rig) {
		r.send("moves", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry/2)
		to := func(dir string) *config.Agent {
			a := r.declare(dir)
			a.Name = "moves"
			return a
		}
		load := func(want *Plan, agents ...*config.Agent) {
			t.Helper()
			plan, err := r.s.Reload(r.with(agents...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, plan); diff != "" {
				t.Error(diff)
			}
		}
		load(&Plan{Changed: []string{"moves"}, Unchanged: []string{"stays"}}, to("second"), r.declare("stays"))
		load(&Plan{Unchanged: []string{"moves", "stays"}}, to("second"), r.declare("stays"))
		load(&Plan{Changed: []string{"moves"}, Removed: []string{"stays"}, Added: []string{"fresh"}}, to("third"), r.declare("fresh"))
		if flock.Held(r.declare("second").Dir) {
			t.Error("the directory that nobody wants any more is locked")
		}
		load(&Plan{Removed: []string{"moves"}, Unchanged: []string{"fresh"}}, r.declare("fresh"))
		load(&Plan{Added: []string{"moves"}, Unchanged: []string{"fresh"}}, to("third"), r.declare("fresh"))
		r.send("third", 1)
		r.sleep(2 * time.Minute)
		if a := r.state("moves"); a.Acknowledged != 1 || a.State != Idle {
			t.Errorf("%+v, want one done in its last directory", a)
		}
		if all := r.s.Snapshot(); len(all) != 2 || !flock.Held(r.declare("third").Dir) || flock.Held(r.declare("moves").Dir) {
			t.Errorf("agents %+v, or the locks do not follow", all)
		}
	})
}

// TestTwoAgentsSwapDirectories does so in the middle of their turns.
func TestTwoAgentsSwapDirectories(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.send("a", 2)
		r.send("b", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry/2)
		a, b := r.declare("b"), r.declare("a")
		a.Name, b.Name = "a", "b"
		for range 100 {
			if _, err := r.s.Reload(r.with(a, b)); err != nil {
				t.Fatal(err)
			}
		}
		r.sleep(3 * time.Minute)
		if got := r.state("b"); got.Acknowledged != 1 || got.State != Idle {
			t.Errorf("b: %+v, want what was left in the directory that it took over", got)
		}
		if len(r.s.Snapshot()) != 2 || !flock.Held(a.Dir) || !flock.Held(b.Dir) {
			t.Error("the locks do not follow")
		}
	})
}

// TestReloadsAtOnceAndDuringAStop: what a reload locks is given back, whatever
// the stop finds it at.
func TestReloadsAtOnceAndDuringAStop(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.send("a", 1)
		stop := r.run()
		r.sleep(boot + entry/2)
		swapped := []*config.Agent{r.declare("b"), r.declare("a"), r.declare("c")}
		swapped[0].Name, swapped[1].Name = "a", "b"
		fleets := []*config.Fleet{r.with(swapped...), r.with(r.declare("a"), r.declare("d")), r.with()}
		var reloads sync.WaitGroup
		for i := range 4 {
			reloads.Go(func() {
				for n := i; ; n++ {
					if _, err := r.s.Reload(fleets[n%len(fleets)]); errors.Is(err, errStopping) {
						return
					} else if err != nil {
						t.Error(err)
					}
				}
			})
		}
		stop()
		reloads.Wait()
		for _, dir := range []string{"a", "b", "c", "d"} {
			if flock.Held(r.declare(dir).Dir) {
				t.Errorf("%s is still locked", dir)
			}
		}
	})
}
