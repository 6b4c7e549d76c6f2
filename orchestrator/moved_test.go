package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
)

// moves is the fleet's file in which "a" has another directory, where a new agent "b" has its
// former one.
func (r *rig) moves() (a, b *config.Agent) {
	r.t.Helper()
	old := r.agent("a")
	a, b = new(*old), new(*old)
	b.Name = "b"
	a.Dir = filepath.Join(r.dir, "elsewhere")
	a.Home = filepath.Join(a.Dir, ".heartbeat")
	a.Inbox = filepath.Join(a.Home, "inbox.jsonl")
	r.fleet = r.with(a, b)
	return a, b
}

// TestWhatIsRememberedFollowsAnAgentToItsNextDirectory: who took its former one got its
// prompts as dead letters, lost and forged, and what it had to prove was forgotten.
func TestWhatIsRememberedFollowsAnAgentToItsNextDirectory(t *testing.T) {
	t.Parallel()
	type fates struct{ a, b []string }
	for name, k := range map[string]struct {
		move func(from, to string) error
		want fates
		done [2]int // of a, of b
	}{
		"with its queue": {
			move: os.Rename, done: [2]int{3, 0},
		},
		"its queue is gone": {
			move: func(from, _ string) error { return os.RemoveAll(from) },
			want: fates{a: []string{"lost prompt m1", "lost prompt m2"}}, done: [2]int{1, 0},
		},
		"its queue stays": {
			move: func(_, to string) error { return os.MkdirAll(to, 0o700) }, done: [2]int{1, 2},
		},
	} {
		for _, reload := range []bool{false, true} {
			if reload && name == "with its queue" {
				continue // the run holds what it has locked, wherever it is now, and refuses the file
			}
			t.Run(name+map[bool]string{true: ", reloaded"}[reload], func(t *testing.T) {
				t.Parallel()
				inBubble(t, "a", func(t *testing.T, r *rig) {
					checks := r.proves(config.NewUntil("make", "test"), passing)
					r.set("", claims(time.Minute))
					stop := r.run() // who the agents are is known from now on
					r.sleep(time.Second)
					if !reload {
						stop()
					} else if _, err := r.s.Pause("a"); err != nil {
						t.Fatal(err)
					}
					r.queues("m1", "m2")
					state := filepath.Join(r.dir, "state")
					demand := ledger.Demand{ID: "m2", Inbox: r.agent("a").Inbox, Text: "prompt m2", Until: config.NewUntil("make", "lint"), Queued: true, At: time.Now()}
					if err := ledger.KeepDemand(state, demand); err != nil {
						t.Fatal(err)
					}
					from := r.agent("a").Dir
					a, b := r.moves()
					if err := errors.Join(k.move(from, a.Dir), os.MkdirAll(a.Home, 0o700), os.MkdirAll(b.Home, 0o700)); err != nil {
						t.Fatal(err)
					}
					if !reload {
						stop = r.run()
					} else if _, err := r.s.Reload(r.fleet); err != nil {
						t.Fatal(err)
					} else if _, err := r.s.Resume("b"); err != nil { // it is as paused as who was there before
						t.Fatal(err)
					}
					defer stop()
					r.queues("m3")
					r.sleep(time.Hour)
					if got := (fates{r.filedOf("a"), r.filedOf("b")}); !slices.Equal(got.a, k.want.a) || !slices.Equal(got.b, k.want.b) {
						t.Errorf("dead letters %q", got)
					}
					if lint := slices.ContainsFunc(checks.asked, func(c proof.Check) bool { return slices.Contains(c.Argv, "lint") }); lint == (name == "its queue is gone") {
						t.Errorf("what m2 has to pass was asked: %t", lint)
					}
					if got := [2]int{r.state("a").Acknowledged, r.state("b").Acknowledged}; got != k.done || checks.n() != k.done[0]+k.done[1] {
						t.Errorf("done: %v after %d checks, want %v", got, checks.n(), k.done)
					}
				})
			})
		}
	}
}

// filedOf are the dead letters of an agent, in a line each.
func (r *rig) filedOf(agent string) (all []string) {
	for _, d := range r.dead(agent) {
		all = append(all, string(d.Reason)+" "+d.Prompt())
	}
	slices.Sort(all)
	return all
}
