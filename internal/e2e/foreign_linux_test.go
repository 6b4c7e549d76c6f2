package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// Stop hooks that are not ours, as command lines. firstTests lets a turn end
// with the third Stop, tooth never, player always.
const (
	player     = "exec true"
	tooth      = "echo once more >&2; exit 2"
	firstTests = `n=$(cat stops 2>/dev/null || echo 0); n=$((n+1)); echo $n > stops; ` +
		`[ $((n % 3)) = 0 ] || { echo "run the tests first ($n)" >&2; exit 2; }`
)

func stopHook(command string) map[string]any {
	return map[string]any{"hooks": map[string]any{"Stop": []any{
		map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}},
	}}}
}

// places are where a Stop hook may come from.
var places = map[string]func(f *fleet, settings map[string]any){
	"user": func(f *fleet, s map[string]any) {
		if err := os.MkdirAll(filepath.Join(f.Home, ".claude"), 0o700); err != nil {
			f.t.Fatal(err)
		}
		f.WriteJSON(filepath.Join(f.Home, ".claude", "settings.json"), s)
	},
	"project": func(f *fleet, s map[string]any) { f.ProjectSettings(s) },
	"local": func(f *fleet, s map[string]any) {
		f.WriteJSON(filepath.Join(f.Work, ".claude", "settings.local.json"), s)
	},
	"--settings": func(f *fleet, s map[string]any) {
		path := filepath.Join(f.Dir, "more.json")
		f.WriteJSON(path, s)
		f.argue("--settings", path)
	},
	"managed": func(f *fleet, s map[string]any) { f.manage(s) },
}

// manage gives the fleet's programs, and what they start, an administrator's
// settings. The machine's own are not touched.
func (f *fleet) manage(s map[string]any) {
	f.t.Helper()
	f.managed = filepath.Join(f.Dir, "etc")
	own := filepath.Join(f.managed, "upper", "claude-code")
	if err := errors.Join(os.MkdirAll(own, 0o755), os.Mkdir(filepath.Join(f.managed, "work"), 0o755)); err != nil {
		f.t.Fatal(err)
	}
	f.WriteJSON(filepath.Join(own, "managed-settings.json"), s)
	if out, err := exec.Command("unshare", "-m", "sh", "-c", overlay, f.managed, "true").CombinedOutput(); err != nil {
		f.t.Skipf("nothing can be laid over /etc here: %v: %s", err, out)
	}
}

// argue adds arguments to the agent's command.
func (f *fleet) argue(args ...string) {
	f.t.Helper()
	text, err := os.ReadFile(f.file)
	if err != nil {
		f.t.Fatal(err)
	}
	var quoted strings.Builder
	for _, a := range args {
		fmt.Fprintf(&quoted, ", %q", a)
	}
	head, rest, _ := strings.Cut(string(text), "command: ")
	command, rest, _ := strings.Cut(rest, "\n")
	f.write(f.file, head+"command: "+strings.TrimSuffix(command, "]")+quoted.String()+"]\n"+rest)
}

// sessions returns how many entries each session did, in order.
func (f *fleet) sessions() []int {
	var done []int
	last := ""
	for _, d := range f.outbox() {
		if d.Session != last {
			done, last = append(done, 0), d.Session
		}
		done[len(done)-1]++
	}
	return done
}

// TestForeignStopHookThatNeverBlocks: it changes nothing.
func TestForeignStopHookThatNeverBlocks(t *testing.T) {
	t.Parallel()
	for place, put := range places {
		t.Run(place, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, nil)
				f.teach()
				put(f, stopHook(player))
				for _, p := range []string{"one", "two", "three"} {
					f.send(p)
				}
				f.must("", "run", "--once")
				if got := f.sessions(); !slices.Equal(got, []int{3}) {
					t.Errorf("entries by session: %v", got)
				}
				if n := len(f.calls()); n != 3 {
					t.Errorf("%d model calls", n)
				}
				if got := f.ends(); !slices.Equal(got, []string{"drained"}) {
					t.Errorf("ends: %q", got)
				}
			})
		})
	}
}

// TestForeignStopHookThatAlwaysBlocks ends the session as a runaway that names
// it, and holds the agent: it would be the same again.
func TestForeignStopHookThatAlwaysBlocks(t *testing.T) {
	t.Parallel()
	for place, put := range places {
		t.Run(place, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"max-continuations: 4", "on-orphan: retry"})
				f.teach()
				put(f, stopHook(tooth))
				f.send("one")
				out, errs, code := f.heartbeat("", "run", "--once")
				if code != 1 {
					t.Errorf("exit %d\n%s%s", code, out, errs)
				}
				most := 5
				if place == "managed" {
					most = 20 // the shim ends it: the client does not call our hook
				}
				if n := len(f.calls()); n < 2 || n > most {
					t.Errorf("%d model calls", n)
				}
				if got := f.ends(); len(got) != 1 || !strings.HasPrefix(got[0], "runaway") || !strings.Contains(got[0], tooth) {
					t.Errorf("ends: %q", got)
				}
				if len(f.outbox()) != 0 || len(f.dead()) != 0 {
					t.Errorf("%+v, %+v", f.outbox(), f.dead())
				}
				if events := f.must("", "events"); !strings.Contains(events, "→ held: runaway ("+tooth) {
					t.Errorf("%s", events)
				}
				if status, _, _ := f.heartbeat("", "status"); !strings.Contains(status, tooth) || !strings.Contains(status, "remove it") {
					t.Errorf("status does not say what to do:\n%s", status)
				}
			})
		})
	}
}

// TestForeignStopHookAfterTheRuling: more is queued, and then nothing.
func TestForeignStopHookAfterTheRuling(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"max-continuations: 4", "foreign-stop-hooks: free"})
		f.teach()
		f.ProjectSettings(stopHook(tooth))
		f.send("one")
		f.send("two")
		f.heartbeat("", "run", "--once")
		if n := len(f.calls()); n > 7 {
			t.Errorf("%d model calls", n)
		}
		if got := f.ends(); len(got) != 1 || !strings.HasPrefix(got[0], "runaway") {
			t.Errorf("ends: %q", got)
		}
	})
}

// TestForeignStopHookWithAReason finishes its work before the next prompt: a
// session takes one, and the conversation goes on in the next session.
func TestForeignStopHookWithAReason(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		place  string
		fields []string
	}{
		"learned, by the user":          {place: "user"},
		"learned, by the command":       {place: "--settings"},
		"learned, of the administrator": {place: "managed"},
		"declared":                      {place: "project", fields: []string{"foreign-stop-hooks: gate"}},
		"kept waiting":                  {place: "project", fields: []string{"mode: persist"}},
	}
	for _, name := range testbed.SampleOf(t, slices.Sorted(maps.Keys(ways)), 3) {
		tt := ways[name]
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, tt.fields)
				places[tt.place](f, stopHook(firstTests))
				prompts := []string{"alpha", "beta", "gamma"}
				var behaviours []behaviour
				for i, p := range append([]string{"omega"}, prompts...) {
					behaviours = append(behaviours,
						behaviour{match: fmt.Sprintf("(%d)", 3*i+1), reply: p + " fails", delay: 300 * time.Millisecond},
						behaviour{match: fmt.Sprintf("(%d)", 3*i+2), reply: p + " passes"},
						behaviour{match: p, reply: "did " + p})
				}
				f.teach(behaviours...)
				f.send("omega")
				f.must("", "run", "--once")
				for _, p := range prompts {
					f.send(p)
				}
				f.must("", "run", "--once")
				var got []string
				for _, d := range f.outbox() {
					got = append(got, d.Reply)
				}
				if want := []string{"omega passes", "alpha passes", "beta passes", "gamma passes"}; !slices.Equal(got, want) {
					t.Errorf("replies %q, want %q", got, want)
				}
				if got := f.sessions(); !slices.Equal(got, []int{1, 1, 1, 1}) {
					t.Errorf("entries by session: %v", got)
				}
				if n := len(f.calls()); n != 12 {
					t.Errorf("%d model calls: %q", n, f.calls())
				}
				if c.real {
					requests := f.API.Requests()
					if last := requests[len(requests)-1]; last.Copies("Task from the queue:\n\nalpha") != 1 {
						t.Errorf("the last session does not go on in the conversation of the first")
					}
				}
				if len(f.dead()) != 0 {
					t.Errorf("%+v", f.dead())
				}
			})
		})
	}
}

// TestForeignStopHookThatStopsTheClient where ours hands the next prompt over: the
// client keeps it and stands idle. The prompt was marked as interrupted, half a
// minute later, each time.
func TestForeignStopHookThatStopsTheClient(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach()
		f.ProjectSettings(stopHook(`echo '{"continue": false}'`))
		for _, p := range []string{"alpha", "beta", "gamma"} {
			f.send(p)
		}
		f.must("", "run", "--once")
		if got := f.prompts(); !slices.Equal(got, []string{"alpha", "beta", "gamma"}) {
			t.Errorf("prompts: %q", got)
		}
		if got := f.sessions(); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("entries by session: %v", got)
		}
		if got := f.ends(); len(got) != 3 || !strings.Contains(got[0], "had the client stop") {
			t.Errorf("ends: %q", got)
		}
	})
}

// TestForeignStopHookThatWakesTheClient after its Stop: nobody waits for it, and
// each time is a paid turn.
func TestForeignStopHookThatWakesTheClient(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"max-continuations: 3"})
		f.teach()
		f.ProjectSettings(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{
			map[string]any{"type": "command", "command": "sleep 0.2; echo up >&2; exit 2", "asyncRewake": true},
		}}}}})
		f.send("one")
		f.heartbeat("", "run", "--once")
		n, ends := len(f.calls()), f.ends() // it may have ended before the client had woken
		if n > 5 || len(ends) != 1 || n > 3 && !strings.HasPrefix(ends[0], "runaway") {
			t.Errorf("%d model calls, ends: %q", n, ends)
		}
	})
}

// TestForeignStopHookIsLearnedInTheMiddle: three prompts are queued when it
// blocks for the first time.
func TestForeignStopHookIsLearnedInTheMiddle(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.teach()
		f.ProjectSettings(stopHook(firstTests))
		for _, p := range []string{"alpha", "beta", "gamma"} {
			f.send(p)
		}
		f.must("", "run", "--once")
		if got := f.sessions(); !slices.Equal(got, []int{2, 1}) {
			t.Errorf("entries by session: %v", got)
		}
		at := -1
		for _, p := range []string{"alpha", "beta", "gamma"} {
			here := slices.IndexFunc(f.prompts(), func(got string) bool { return strings.TrimSpace(got) == p })
			if here <= at {
				t.Errorf("%q is out of order: %q", p, f.prompts())
			}
			at = here
		}
		if doctor, _, _ := f.heartbeat("", "doctor"); !strings.Contains(doctor, "stop-hook-gates") {
			t.Errorf("doctor does not name it:\n%s", doctor)
		}
	})
}
