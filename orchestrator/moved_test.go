package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
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

// TestALockOfThisRunIsItsOwn: a directory that was moved, and named by another path in the
// file, was "another heartbeat (process ITSELF)" for the run that had it: the whole file was
// refused, and two agents whose directories were swapped were lost for good.
func TestALockOfThisRunIsItsOwn(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		moves string            // "a>x b>a": renames, one after the other; "+a": a directory is made
		file  map[string]string // the directory of each agent afterwards; nil: no reload
	}{
		"moved":                               {"a>x", map[string]string{"a": "x", "b": "b"}},
		"moved, another in its place":         {"a>x +a", map[string]string{"a": "x", "b": "b"}},
		"moved, a new agent in its place":     {"a>x +a", map[string]string{"a": "x", "b": "b", "c": "a"}},
		"moved, a new agent without one":      {"a>x", map[string]string{"a": "x", "b": "b", "c": "a"}},
		"moved and renamed":                   {"a>x", map[string]string{"c": "x", "b": "b"}},
		"moved onto another agent's":          {"b>y a>b", map[string]string{"a": "b"}},
		"another agent's takes its place":     {"a>x b>a +b", map[string]string{"a": "a", "b": "b"}},
		"another agent's is meant":            {"b>x +b", map[string]string{"a": "x", "b": "b"}},
		"swapped on disk":                     {"a>x b>a x>b", nil},
		"swapped in the file":                 {"", map[string]string{"a": "b", "b": "a"}},
		"swapped in both":                     {"a>x b>a x>b", map[string]string{"a": "b", "b": "a"}},
		"swapped on disk, reloaded":           {"a>x b>a x>b", map[string]string{"a": "a", "b": "b", "c": "c"}},
		"moved and back":                      {"a>x x>a", map[string]string{"a": "a", "b": "b"}},
		"one further, and the last one first": {"a>x b>a +c c>b x>c", map[string]string{"a": "c", "b": "a", "c": "b"}},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in a turn"}[busy], func(t *testing.T) {
				t.Parallel()
				inBubble(t, "a b", func(t *testing.T, r *rig) {
					r.rough = true
					r.send("a", 1)
					r.send("b", 1)
					stop := r.run()
					defer stop()
					if r.sleep(boot + entry/2); !busy {
						r.sleep(time.Hour)
					}
					r.shuffle(k.moves)
					if k.file != nil {
						var all []*config.Agent
						for name, dir := range k.file {
							one := r.declare(dir)
							one.Name = name
							all = append(all, one)
						}
						slices.SortFunc(all, func(a, b *config.Agent) int { return strings.Compare(a.Name, b.Name) })
						r.fleet = r.with(all...)
						if _, err := r.s.Reload(r.fleet); err != nil {
							t.Fatal(err)
						}
					}
					r.sleep(time.Hour)
					for _, a := range r.fleet.Agents {
						was := r.state(a.Name).Acknowledged
						r.send(filepath.Base(a.Dir), 1)
						r.sleep(time.Hour)
						if now := r.state(a.Name); now.State != Idle || now.Acknowledged != was+1 {
							t.Errorf("%s in %s: %d done after %d: %s (%s)", a.Name, filepath.Base(a.Dir), now.Acknowledged, was, now.State, now.Reason)
						}
						if !flock.Held(a.Dir) {
							t.Errorf("%s: %s is not locked", a.Name, a.Dir)
						}
					}
					for _, dir := range []string{"a", "b", "c", "x", "y"} {
						used := slices.ContainsFunc(r.fleet.Agents, func(a *config.Agent) bool { return filepath.Base(a.Dir) == dir })
						if !used && flock.Held(filepath.Join(r.dir, dir)) {
							t.Errorf("%s is locked, and no agent has it", dir)
						}
					}
				})
			})
		}
	}
}

// shuffle renames and makes agents' directories.
func (r *rig) shuffle(moves string) {
	r.t.Helper()
	for move := range strings.FieldsSeq(moves) {
		from, to, renamed := strings.Cut(move, ">")
		var err error
		if renamed {
			err = os.Rename(filepath.Join(r.dir, from), filepath.Join(r.dir, to))
		} else {
			err = os.Mkdir(filepath.Join(r.dir, strings.TrimPrefix(from, "+")), 0o700)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}
