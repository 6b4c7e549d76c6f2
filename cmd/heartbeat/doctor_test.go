package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

// patient is a world with a fleet of one agent that the stand-in runs, so that
// nothing is wrong with its client.
func patient(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n")
	w.put("home/.keep", "")
	return w
}

type examination struct {
	Counts struct{ Agents, Error, Warning int }
	Mended []struct {
		Agent, Done, Error string
		Codes              []string
	}
	Findings []struct {
		Severity, Code, Agent, Seen, Why, Fix string
		Fixable                               bool
	}
}

// codes lists what was found about agents; the machine that runs the tests
// may have findings of its own.
func (e examination) codes() string {
	var codes []string
	for _, f := range e.Findings {
		if f.Agent != "" && !strings.HasPrefix(f.Code, "disk-") {
			codes = append(codes, f.Severity+" "+f.Code)
		}
	}
	return strings.Join(codes, ", ")
}

func TestDoctorOfAHealthyFleet(t *testing.T) {
	t.Parallel()
	w := patient(t)
	w.ok("apply")
	var e examination
	w.into(&e, "doctor")
	if e.codes() != "" || e.Counts.Agents != 1 || e.Counts.Error != 0 || e.Findings == nil || e.Mended == nil {
		t.Errorf("got %+v", e)
	}
}

func TestDoctorWarningsAreNoFailure(t *testing.T) {
	t.Parallel()
	w := patient(t)
	var e examination
	w.into(&e, "doctor")
	if e.codes() != "warning not-applied" {
		t.Errorf("found %s", e.codes())
	}
	if left := w.names("agents"); len(left) != 0 {
		t.Errorf("looking made %v", left)
	}
}

func TestDoctorErrors(t *testing.T) {
	t.Parallel()
	w := patient(t)
	w.ok("apply")
	w.put("agents/triage/.claude/settings.local.json", `{"disableAllHooks":true,"env":{"HEARTBEAT_HOME":"/"}}`)
	o := w.run("doctor", "triage", "-o", "json")
	r := envelopeOf(t, o)
	if o.status != 1 || !strings.Contains(*r.Error.Message, "doctor has found 2 errors") {
		t.Errorf("status %d: %s", o.status, o.stdout)
	}
	o = w.run("doctor")
	for _, want := range []string{"triage\n  error hooks-disabled\n    seen  ", "\n    why   ", "\n    fix   remove disableAllHooks from "} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, o.stdout)
		}
	}
	if o.status != 1 || !strings.Contains(o.stdout, "2 errors") || o.stderr != "" {
		t.Errorf("status %d, stderr %q", o.status, o.stderr)
	}
}

func TestDoctorFix(t *testing.T) {
	t.Parallel()
	w := patient(t)
	w.ok("apply")
	settings := filepath.Join(w.dir, "agents/triage/.claude/settings.json")
	text := w.get("agents/triage/.claude/settings.json")
	broken := strings.Replace(text, "; /", "; /nowhere/", 1)
	if err := errors.Join(os.WriteFile(settings, []byte(broken), 0o600), os.Remove(filepath.Join(w.dir, "agents/triage/.heartbeat/.gitignore"))); err != nil {
		t.Fatal(err)
	}
	o := w.run("doctor")
	if o.status != 1 || !strings.Contains(o.stdout, "; heartbeat doctor --fix repairs some of it\n") {
		t.Fatalf("status %d: %s%s", o.status, o.stdout, o.stderr)
	}
	var e examination
	w.into(&e, "doctor", "--fix")
	if len(e.Mended) != 1 || e.Mended[0].Error != "" || e.codes() != "" {
		t.Errorf("got %+v", e)
	}
	if w.get("agents/triage/.claude/settings.json") != text {
		t.Error("the settings are not what apply wrote")
	}
}

// Lines that people read have at most 80 columns; commands and paths are left
// whole, to be copied.
func TestDoctorLayout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.put("agents/triage/.claude/settings.json", `{"hooks":{"Stopp":[]}}`)
	for line := range strings.SplitSeq(w.run("doctor").stdout, "\n") {
		if width(line) > 80 && !strings.HasPrefix(line, "    fix   ") && len(strings.Fields(line)) > 2 {
			t.Errorf("%d columns: %s", width(line), line)
		}
	}
}

func TestDoctorColours(t *testing.T) {
	t.Parallel()
	w := patient(t)
	self := testbed.Program(t, "heartbeat")
	for env, want := range map[string]string{"TERM=xterm-256color": "\x1b[33mwarning\x1b[0m", "NO_COLOR=1": "  warning not-applied"} {
		var screen strings.Builder
		child, err := ptyrun.Start(t.Context(), ptyrun.Config{
			Argv: []string{self, "doctor"}, Dir: w.dir, Env: append(w.env, env), Output: &screen,
		})
		if err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		if exit := child.End(t.Context()); exit.Code != 0 || !strings.Contains(screen.String(), want) {
			t.Errorf("%s: status %d, want %q in %q", env, exit.Code, want, screen.String())
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"":                    {""},
		"one two three":       {"one two", "three"},
		"a verylongword here": {"a", "verylongword", "here"},
		"exactly8 x":          {"exactly8", "x"},
	}
	for text, want := range tests {
		if got := wrap(text, 8); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestDoctorNamesWhatStandsStill: agents that a person has paused, triggers that
// fail, variables that are not there, whether a run lives or not.
func TestDoctorNamesWhatStandsStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", `version: 1
name: fleet
defaults: {command: [heartbeat, simulate]}
agents:
  paused: {dir: paused}
  failing: {dir: failing, trigger: {poll: [sh, -c, "echo no tickets >&2; exit 3"], every: 1s}}
  bare: {dir: bare, env-file: gone.env}
  gated: {dir: gated, trigger: {cron: "* * * * * *", seconds: true, prompt: x, gate: [./gone.sh]}}
`)
	found := func() map[string]string {
		var e struct {
			Findings []struct{ Agent, Code, Seen, Fix string }
		}
		r := envelopeOf(t, w.run("doctor", "-o", "json"))
		if err := json.Unmarshal(r.Data, &e); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, f := range e.Findings {
			all[f.Agent+" "+f.Code] = f.Seen + " | " + f.Fix
		}
		return all
	}
	w.run("apply")
	r := w.background()
	w.ok("pause", "paused")
	var now map[string]string
	until(t, "the triggers have failed", func() bool {
		now = found()
		return now["failing trigger-fails"] != "" && now["gated trigger-fails"] != ""
	})
	if f := now["failing trigger-fails"]; !strings.Contains(f, "trigger poll-1 has failed") || !strings.Contains(f, "no tickets") || !strings.HasSuffix(f, "heartbeat trigger failing poll-1") {
		t.Errorf("%s", f)
	}
	r.stop()
	for _, all := range []map[string]string{now, found()} {
		if f := all["paused paused"]; !strings.Contains(f, "paused by a person for ") || !strings.HasSuffix(f, "heartbeat resume paused") {
			t.Errorf("paused: %q in %v", f, all)
		}
		if f := all["bare env-file"]; !strings.Contains(f, "gone.env") {
			t.Errorf("without its variables: %q in %v", f, all)
		}
	}
	if o := w.run("validate"); !strings.Contains(o.stderr, "warning: heartbeat.yaml:7:31: agents.bare.env-file: cannot read env-file") {
		t.Errorf("validate: %+v", o)
	}
}

// TestPermissionRulesAreJudgedWhereTheyStand in heartbeat.yaml: the client says
// what it refuses in a dialog that nobody answers, and of the rest nothing.
func TestPermissionRulesAreJudgedWhereTheyStand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    permissions:\n      allow: [Reed, \"Write(src/**)\"]\n      deny: [Read]\n")
	o := w.run("validate")
	for _, want := range []string{
		"warning: heartbeat.yaml:7:15: agents.triage.permissions.allow[0]: \"Reed\" never matches: Claude Code has no tool \"Reed\" (did you mean Read?)\n",
		"warning: heartbeat.yaml:7:21: agents.triage.permissions.allow[1]: \"Write(src/**)\" never matches: only Edit rules apply to paths (write Edit(src/**))\n",
	} {
		if o.status != 0 || !strings.Contains(o.stderr, want) {
			t.Errorf("%+v", o)
		}
	}
	w.put("heartbeat.yaml", strings.Replace(w.get("heartbeat.yaml"), "deny: [Read]", "deny: [Read, bash]", 1))
	for _, command := range []string{"validate", "apply", "run --once"} {
		o := w.run(strings.Fields(command)...)
		if o.status != exitConfig || !strings.Contains(o.stderr, "heartbeat.yaml:8:20: agents.triage.permissions.deny[1]: Claude Code refuses \"bash\": names of tools begin with a capital letter (did you mean Bash?)") {
			t.Errorf("%s: %+v", command, o)
		}
	}
}
