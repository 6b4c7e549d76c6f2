package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const settingsPath = "agents/triage/.claude/settings.json"

func TestDiffApplyUnapply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	const original = "{\n\t\"model\": \"opus\"\n}"
	w.put(settingsPath, original)
	o := w.run("diff")
	if o.status != 1 || o.stderr != "" || !strings.Contains(o.stdout, "+\t\"hooks\": {\n") || w.get(settingsPath) != original {
		t.Fatalf("diff before: %+v", o)
	}
	r := envelopeOf(t, w.run("diff", "-o", "json"))
	var d struct {
		Changes []struct{ Change string }
		Diff    string
	}
	if err := json.Unmarshal(r.Data, &d); err != nil {
		t.Fatal(err)
	}
	if *r.Error.Code != "changes" || len(d.Changes) != 2 || d.Diff != o.stdout {
		t.Errorf("with JSON: %s %+v", *r.Error.Code, d)
	}
	w.ok("apply")
	after := w.get(settingsPath)
	if out := w.ok("diff"); out != "" {
		t.Errorf("diff after: %s", out)
	}
	if out := w.ok("unapply", "--dry-run"); !strings.Contains(out, "1 changed") || !strings.Contains(out, "(nothing was done)") || w.get(settingsPath) != after {
		t.Errorf("dry run: %s", out)
	}
	if out := w.ok("unapply"); !strings.Contains(out, "1 changed, 0 unchanged, 1 removed\n") {
		t.Errorf("unapply: %s", out)
	}
	if got := w.get(settingsPath); got != original {
		t.Errorf("settings: %q", got)
	}
	if left := w.names("agents/triage"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if out := w.ok("unapply", "triage"); out != "0 created, 0 changed, 0 unchanged\n" {
		t.Errorf("unapply again: %s", out)
	}
	if o := w.run("unapply", "triag"); o.status != 1 || !strings.Contains(o.stderr, "did you mean triage?") {
		t.Errorf("of nobody: %+v", o)
	}
}

// What diff prints, patch(1) turns into what apply makes.
func TestDiffIsAPatch(t *testing.T) {
	t.Parallel()
	patch, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("patch is not installed")
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.put(settingsPath, "{\n\t\"model\": \"opus\"\n}")
	cmd := exec.CommandContext(t.Context(), patch, "-p0", "--batch")
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(w.run("diff").stdout)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("patch: %v: %s", err, out)
	}
	if out := w.ok("diff"); out != "" {
		t.Errorf("left: %s", out)
	}
}

func TestApplyCleansUpAfterDroppedAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"  other:\n    dir: agents/other\n  flagged:\n    dir: agents/flagged\n    settings: flag\n")
	w.ok("apply")
	w.ok("send", "other", "a prompt")
	w.put("heartbeat.yaml", oneAgent)
	if o := w.run("diff"); o.status != 1 || !strings.Contains(o.stdout, "other/.claude/settings.json\n+++ /dev/null") {
		t.Errorf("diff: %+v", o)
	}
	if out := w.done("apply", "triage"); strings.Contains(out, "other") {
		t.Errorf("one agent alone: %s", out)
	}
	out := w.done("apply")
	if !strings.Contains(out, "other    removed    "+w.dir+"/agents/other/.claude/settings.json") || !strings.Contains(out, ", 2 removed\n") {
		t.Errorf("apply: %s", out)
	}
	if got := w.names("agents/other"); len(got) != 1 || got[0] != ".heartbeat" {
		t.Errorf("in the other's directory: %v", got)
	}
	if out := w.ok("inbox", "triage"); out == "" {
		t.Error("no inbox")
	}
	if !strings.Contains(w.get("agents/other/.heartbeat/inbox.jsonl"), "a prompt") {
		t.Error("the queue is gone")
	}
}

// TestUnapplyAfterAMove (found by a user: after a rename of the fleet's folder
// unapply did nothing and called that a success): what was applied is found
// again. With another state directory nothing is on record; then our hooks go,
// and it says which rules stay.
func TestUnapplyAfterAMove(t *testing.T) {
	t.Parallel()
	const (
		fleet    = "version: 1\nagents:\n  triage: {dir: triage, permissions: {allow: [Read, Edit]}}\n  broken: {dir: broken}\n  other: {dir: other}\n"
		theirs   = `{"type":"command","command":"/usr/bin/lint"}`
		original = `{"permissions":{"allow":["Edit","Grep"]},"hooks":{"Stop":[{"hooks":[` + theirs + `]}]}}`
	)
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		w.put("one/heartbeat.yaml", fleet)
		w.put("one/triage/.claude/settings.json", original)
		w.done("apply", "-f", "one/heartbeat.yaml")
		w.shell("mv one two")
		if lost {
			w.shell("mv state lost")
		}
		w.put("two/broken/.claude/settings.json", "{")
		for _, dry := range []bool{true, false} {
			args := []string{"unapply", "-f", "two/heartbeat.yaml"}
			if dry {
				args = append(args, "--dry-run")
			}
			o := w.run(args...)
			changed, warnings := "1 changed, 0 unchanged, 4 removed", 1
			if lost {
				changed, warnings = "2 changed", 3
			}
			if o.status != 0 || !strings.Contains(o.stdout, changed) || strings.Count(o.stderr, "warning: ") != warnings ||
				lost != strings.Contains(o.stderr, "stay, which may be of heartbeat or of yours: Edit, Read, Bash(heartbeat alive *), Bash(heartbeat approval ask *), Edit(.claude/**), Edit(.heartbeat/**), Bash(heartbeat approval approve *), ") ||
				!strings.Contains(o.stderr, `agent "broken": cannot look for our hooks`) {
				t.Errorf("lost %v, dry run %v: %+v", lost, dry, o)
			}
			if hooked := strings.Contains(w.get("two/triage/.claude/settings.json"), " hook; test "); hooked != dry {
				t.Errorf("lost %v, dry run %v, and our hooks are there: %v", lost, dry, hooked)
			}
		}
		switch got := w.get("two/triage/.claude/settings.json"); {
		case !lost && got != original:
			t.Errorf("it is not what it was: %s", got)
		case !strings.Contains(got, theirs) || !strings.Contains(got, `"Grep"`):
			t.Errorf("theirs is gone: %s", got)
		}
		if o := w.run("unapply", "-f", "two/heartbeat.yaml", "triage"); o.status != 0 || o.stderr != "" || !strings.Contains(o.stdout, "0 changed") {
			t.Errorf("again: %+v", o)
		}
	}
}

func TestApplyTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	o := w.run("apply", "--trust")
	if o.status != 1 || !strings.Contains(o.stderr, "/home/.claude.json") || !strings.Contains(o.stderr, "hint: start `claude` once") {
		t.Errorf("without a client: %+v", o)
	}
	w.put("home/.claude.json", `{"theme":"dark"}`)
	w.ok("apply")
	if w.get("home/.claude.json") != `{"theme":"dark"}` {
		t.Error("trusted without being asked")
	}
	if out := w.ok("apply", "--trust", "--dry-run"); !strings.Contains(out, "changed    "+w.dir+"/home/.claude.json") || w.get("home/.claude.json") != `{"theme":"dark"}` {
		t.Errorf("dry run: %s", out)
	}
	w.ok("apply", "--trust")
	want := `{"theme":"dark","projects":{"` + w.dir + `/agents/triage":{"hasTrustDialogAccepted":true}}}`
	if got := w.get("home/.claude.json"); got != want {
		t.Errorf("got %s", got)
	}
	if out := w.ok("apply", "--trust"); !strings.Contains(out, "0 changed, 3 unchanged") {
		t.Errorf("again: %s", out)
	}
}

func TestWarningsAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  here:\n    dir: here\n    command: [./gone]\n")
	for _, command := range []string{"validate", "apply"} {
		o := w.run(command)
		if o.status != 0 || !strings.Contains(o.stderr, "warning: heartbeat.yaml:6:15: agents.here.command[0]: ./gone is not there") {
			t.Errorf("%s: %+v", command, o)
		}
	}
	r := envelopeOf(t, w.run("validate", "-o", "json"))
	if len(r.Warnings) != 0 || !strings.Contains(string(r.Data), `"problems":[{"severity":"warning","file":"heartbeat.yaml","line":6`) {
		t.Errorf("with JSON: %v %s", r.Warnings, r.Data)
	}
}

// TestDirectoriesNotThereYet: a directory that is spelt wrongly shows before
// apply makes it.
func TestDirectoriesNotThereYet(t *testing.T) {
	t.Parallel()
	w := patient(t)
	if out := w.ok("validate"); !strings.Contains(out, "/agents/triage (not there yet)") || !strings.Contains(out, "A directory is not there yet; `heartbeat apply` makes it.") {
		t.Errorf("validate: %s", out)
	}
	if r := envelopeOf(t, w.run("validate", "-o", "json")); !strings.Contains(string(r.Data), `"missing":true`) {
		t.Errorf("with JSON: %s", r.Data)
	}
	w.ok("apply")
	if out := w.ok("validate"); strings.Contains(out, "not there") {
		t.Errorf("after apply: %s", out)
	}
}

// A fleet of several files works as one.
func TestIncludedAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\ninclude: [teams/*.yaml]\n")
	w.put("teams/a.yaml", "agents: {triage: {dir: work, command: [heartbeat, simulate]}}\n")
	w.ok("validate")
	w.ok("apply")
	w.ok("send", "triage", "hello")
	if _, err := os.Stat(filepath.Join(w.dir, "teams/work/.heartbeat/inbox.jsonl")); err != nil {
		t.Error(err)
	}
	w.put("teams/b.yaml", "agents: {late: {dir: late, timeout: 5}}\n")
	if o := w.run("validate"); o.status != 78 || !strings.Contains(o.stderr, "\nteams/b.yaml:1:37: agents.late.timeout: ") {
		t.Errorf("%+v", o)
	}
}
