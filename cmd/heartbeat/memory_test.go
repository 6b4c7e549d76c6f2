package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heartbeat/orchestrator/store"
)

// TestNoFileAndNoTicketComesAgain edits a fleet's file in the ways that people
// do, each time with a reload and without a scheduler: every file and every
// ticket came again where a trigger without a name had another position, or
// anything had another name; and what looked at the same under a name that was
// another's found that all of it was queued before.
func TestNoFileAndNoTicketComesAgain(t *testing.T) {
	t.Parallel()
	const in, tickets = `{watch: ["in/*"], debounce: 1ms, prompt: "in {{.Path}}"}`, `{poll: [./tickets], every: 1s, split: lines, dedupe: content, overlap: queue, prompt: "ticket {{.Output}}"}`
	named := func(trigger, name string) string { return strings.Replace(trigger, "{", "{name: "+name+", ", 1) }
	const out = `{watch: ["out/*"], debounce: 1ms, prompt: "out {{.Path}}"}`
	const again = `{watch: ["in/*"], debounce: 1ms, prompt: "again {{.Path}}"}`
	fleet := func(agent string, triggers ...string) string {
		return "version: 1\nname: fleet\nagents:\n  " + agent + ":\n    dir: agents/triage\n    command: [heartbeat, simulate]\n    triggers:\n      - " +
			strings.Join(triggers, "\n      - ") + "\n"
	}
	steps := []struct{ name, file, also string }{ // also: what each file of in/ fires besides
		{"as it was", fleet("triage", in, out, tickets), ""},
		{"another order", fleet("triage", tickets, out, in), ""},
		{"one is inserted", fleet("triage", again, out, in, tickets), "again"},
		{"one is removed", fleet("triage", out, in, tickets), ""},
		{"names are given", fleet("triage", named(in, "new"), out, named(tickets, "desk")), ""},
		{"names change", fleet("triage", named(in, "poll-1"), out, named(tickets, "watch-1")), ""},
		{"the agent is renamed", fleet("other", named(in, "poll-1"), out, named(tickets, "watch-1")), ""},
		{"agent, names and order", fleet("third", named(tickets, "x"), in, out), ""},
		{"the one that was removed comes back", fleet("third", named(tickets, "x"), in, again, out), "again"},
	}
	for _, way := range []string{"reload", "restart"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", steps[0].file)
			w.put("tickets", "#!/bin/sh\necho one; echo two; date +%s%N >>runs\n")
			if err := os.Chmod(filepath.Join(w.dir, "tickets"), 0o700); err != nil {
				t.Fatal(err)
			}
			w.put("agents/triage/in/first.md", "x")
			w.put("agents/triage/out/first.md", "x")
			r := w.background()
			w.ok("pause", "--all") // what is queued stays
			want := map[string]int{"ticket one": 1, "ticket two": 1, "in in/first.md": 1, "out out/first.md": 1}
			files := []string{"first.md"}
			for i, step := range steps {
				if warned := w.run("validate").stderr; strings.Contains(warned, "starts over") {
					t.Errorf("%s: %s", step.name, warned)
				}
				switch {
				case i == 0:
				case way == "restart":
					r.stop()
					w.put("heartbeat.yaml", step.file)
					r = w.background()
				default:
					w.put("heartbeat.yaml", step.file)
					if out := w.ok("reload"); strings.Contains(out, "begins anew") {
						t.Errorf("%s: %s", step.name, out)
					}
				}
				// What comes now shows that all before it was looked at.
				last := fmt.Sprintf("z%d.md", i)
				for _, dir := range []string{"in", "out"} { // whole: an empty one would fire, too
					w.put("new", "x")
					if err := os.Rename(filepath.Join(w.dir, "new"), filepath.Join(w.dir, "agents/triage", dir, last)); err != nil {
						t.Fatal(err)
					}
				}
				want["in in/"+last], want["out out/"+last] = 1, 1
				files = append(files, last)
				if step.also != "" {
					for _, f := range files {
						want[step.also+" in/"+f] = 1
					}
				}
				ran := strings.Count(w.get("agents/triage/runs"), "\n")
				until(t, step.name+": all is queued", func() bool {
					got := promptsOf(w)
					for prompt := range want {
						if got[prompt] == 0 {
							return false
						}
					}
					return strings.Count(w.get("agents/triage/runs"), "\n") > ran+1
				})
				if got := promptsOf(w); !maps.Equal(got, want) {
					t.Errorf("%s: queued %v, want %v", step.name, got, want)
					for _, prompt := range slices.Sorted(maps.Keys(got)) {
						want[prompt] = got[prompt]
					}
				}
			}
			if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			r.ended()
		})
	}
}

// promptsOf counts the prompts in the inbox by their texts.
func promptsOf(w *world) map[string]int {
	all := map[string]int{}
	for line := range strings.Lines(w.get("agents/triage/.heartbeat/inbox.jsonl")) {
		if _, prompt, ok := strings.Cut(strings.TrimSpace(line), `"prompt":"`); ok {
			all[strings.TrimSuffix(prompt, `"}`)]++
		}
	}
	return all
}

// TestATriggerThatIsNotKnownAgainIsToldBefore it fires for everything.
func TestATriggerThatIsNotKnownAgainIsToldBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const before = "version: 1\nname: fleet\nagents:\n  triage:\n    dir: agents/triage\n    command: [heartbeat, simulate]\n" +
		`    triggers: [{watch: ["a/*"], prompt: a}, {watch: ["b/*"], prompt: b}]` + "\n"
	w.put("heartbeat.yaml", before)
	r := w.background()
	until(t, "it is kept which triggers these are", func() bool {
		kept, err := store.Ask(t.Context(), filepath.Join(w.dir, "state/fleet"), func(v *store.View) (n int, err error) {
			_, err = v.One(`SELECT COUNT(*) FROM triggers`, nil, &n)
			return n, err
		})
		return err == nil && kept == 2
	})
	w.put("heartbeat.yaml", strings.NewReplacer("a/*", "c/*", "b/*", "d/*", "prompt: a", "prompt: c", "prompt: b", "prompt: d").Replace(before))
	const want = "trigger watch-1 of agent triage starts over (it is not known which trigger it was before): it fires for each file that matches now"
	for _, args := range [][]string{{"validate"}, {"diff"}, {"apply", "--dry-run"}} {
		if o := w.run(args...); !strings.Contains(o.stderr, want) || !strings.Contains(o.stderr, "watch-2") {
			t.Errorf("heartbeat %q: %s", args, o.stderr)
		}
	}
	var plan struct {
		Anew []struct{ Agent, Trigger, Why, Fires string }
	}
	w.into(&plan, "reload")
	if len(plan.Anew) != 2 || plan.Anew[0].Trigger != "watch-1" || plan.Anew[0].Fires == "" {
		t.Errorf("the plan: %+v", plan)
	}
	if o := w.run("validate"); strings.Contains(o.stderr, "begins anew") {
		t.Errorf("told when it has happened: %s", o.stderr)
	}
	if out := w.ok("events"); strings.Count(out, "trigger-anew") != 2 {
		t.Errorf("events: %s", out)
	}
	r.stop()
}
