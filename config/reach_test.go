package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWithinReach: whatever the fleet's file names and runs is refused in an
// agent's directory, however it gets there, unless trust-dir says otherwise. A
// poll's ./next-ticket.sh was a file that the agent could rewrite.
func TestWithinReach(t *testing.T) {
	t.Parallel()
	const inReach = "lies in the directory of agent"
	for name, tt := range map[string]struct {
		file  string // of the fleet; "": heartbeat.yaml
		yaml  string
		links map[string]string // name → target
		want  []string          // where it is refused
		guard string            // what is guarded with trust-dir
	}{
		"beside the file":          {yaml: "a: {dir: a, trigger: {poll: [./ok.sh]}}"},
		"poll - in the PATH":       {yaml: "a: {dir: a, trigger: {poll: [sh, -c, true]}}"},
		"poll - a shell's words":   {yaml: "a: {dir: a, trigger: {poll: [sh, -c, ./x.sh]}}", want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
		"poll":                     {yaml: "a: {dir: a, trigger: {poll: [./a/x.sh]}}", want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
		"poll - absolute":          {yaml: "a: {dir: a, trigger: {poll: [LAB/a/x.sh]}}", want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
		"poll - roundabout":        {yaml: "a: {dir: a, trigger: {poll: [./b/../a/x.sh]}}", want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
		"poll - another's":         {yaml: "a: {dir: a}\n  b: {dir: b, trigger: {poll: [./a/x.sh]}}", want: []string{"agents.b.trigger.poll[0]"}, guard: "x.sh"},
		"poll - interpreted":       {yaml: "a: {dir: a, trigger: {poll: [sh, x.sh]}}", want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
		"poll - interpreted - far": {yaml: "a: {dir: a, trigger: {poll: [env, A=b, timeout, \"5\", python3.12, -u, ./x.sh]}}", want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
		"poll - a word of a test":  {yaml: "a: {dir: a, trigger: {poll: [test, -e, x.sh]}}"},
		"check":                    {yaml: "a: {dir: a, until: {check: [./a/x.sh]}}", want: []string{"agents.a.until.check[0]"}, guard: "x.sh"},
		"gate":                     {yaml: "a: {dir: a, trigger: {cron: \"@daily\", prompt: x, gate: [./a/x.sh]}}", want: []string{"agents.a.trigger.gate[0]"}, guard: "x.sh"},
		"command":                  {yaml: "a: {dir: a, command: [./a/x.sh]}", want: []string{"agents.a.command[0]"}, guard: "x.sh"},
		"command - found in PATH":  {yaml: "a: {dir: a, command: [x.sh], env: {PATH: LAB/a}}", want: []string{"agents.a.command[0]"}, guard: "x.sh"},
		"command - settings":       {yaml: "a: {dir: a, command: [claude, --settings, s.json]}", want: []string{"agents.a.command[0]"}, guard: "s.json"},
		"command - settings=":      {yaml: "a: {dir: a, command: [claude, --settings=s.json]}", want: []string{"agents.a.command[0]"}, guard: "s.json"},
		"command - its own words":  {yaml: "a: {dir: a, command: [claude, --settings, '{}', x.sh]}"},
		"command - the defaults'":  {yaml: "a: {dir: a}\ndefaults: {command: [./a/x.sh]}", want: []string{"defaults.command[0]"}, guard: "x.sh"},
		"env-file":                 {yaml: "a: {dir: a, env-file: a/e.env}", want: []string{"agents.a.env-file"}, guard: "e.env"},
		"prompt-file":              {yaml: "a: {dir: a, trigger: {cron: \"@daily\", prompt-file: a/p.md}}", want: []string{"agents.a.trigger.prompt-file"}, guard: "p.md"},
		"include":                  {yaml: "a: {dir: a}\ninclude: [a/*.yaml]", want: []string{"include[0]"}, guard: "more.yaml"},
		"the fleet's own file":     {file: "a/heartbeat.yaml", yaml: "a: {dir: .}", want: []string{"agents.a.dir"}, guard: "heartbeat.yaml"},
		"the fleet's file - deep":  {file: "a/b/c/heartbeat.yaml", yaml: "a: {dir: ../..}", want: []string{"agents.a.dir"}, guard: "b/c/heartbeat.yaml"},
		"a link into it":           {yaml: "a: {dir: a, trigger: {poll: [./l]}}", links: map[string]string{"l": "a/x.sh"}, want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
		"a link out of it":         {yaml: "a: {dir: a, trigger: {poll: [./a/l]}}", links: map[string]string{"a/l": "../ok.sh"}, want: []string{"agents.a.trigger.poll[0]"}, guard: "l"},
		"a linked folder in it":    {yaml: "a: {dir: a, trigger: {poll: [./a/l/ok.sh]}}", links: map[string]string{"a/l": ".."}, want: []string{"agents.a.trigger.poll[0]"}, guard: "l"},
		"a link in it - to itself": {yaml: "a: {dir: a, trigger: {poll: [./a/l]}}", links: map[string]string{"a/l": "x.sh"}, want: []string{"agents.a.trigger.poll[0]", "agents.a.trigger.poll[0]"}, guard: "l x.sh"},
		"links without an end":     {yaml: "a: {dir: a, trigger: {poll: [./l]}}", links: map[string]string{"l": "m", "m": "l"}},
		"a linked directory":       {yaml: "a: {dir: l, trigger: {poll: [./a/x.sh]}}", links: map[string]string{"l": "a"}, want: []string{"agents.a.trigger.poll[0]"}, guard: "x.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(lab, "heartbeat.yaml")
			if tt.file != "" {
				file = filepath.Join(lab, tt.file)
			}
			text := strings.ReplaceAll("version: 1\nagents:\n  "+tt.yaml+"\n", "LAB", lab)
			for path, data := range map[string]string{
				"ok.sh": "#!/bin/sh\n", "a/x.sh": "#!/bin/sh\n", "a/s.json": "{}", "a/e.env": "", "a/p.md": "a prompt", "b/x": "",
				"a/more.yaml": "agents: {more: {dir: ../more}}\n",
			} {
				path = filepath.Join(lab, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(data), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for name, target := range tt.links {
				if err := os.Symlink(target, filepath.Join(lab, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			var got []string
			_, err = parseText(file, []byte(text))
			problems, _ := err.(Problems)
			for _, p := range problems {
				got = append(got, p.Key)
				if !strings.Contains(p.Message, inReach) && !strings.Contains(p.Message, "lies in it") || !strings.Contains(p.Hint, "trust-dir: true in agent \"a\"") {
					t.Errorf("%+v", p)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s\n%v", diff, err)
			}
			f, err := parseText(file, []byte(strings.Replace(text, "a: {", "a: {trust-dir: true, ", 1)))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(f.Agent("a").Guarded, " "); got != tt.guard {
				t.Errorf("guarded: %q, want %q", got, tt.guard)
			}
		})
	}
}

// TestProgramsLieBesideTheFile: the word ./x is that of the file that says it.
func TestProgramsLieBesideTheFile(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml": "version: 1\ninclude: [sub/b.yaml]\nagents: {a: {dir: a, command: [./client, x], trigger: {poll: [./p, y], gate: [sub/g]}}}\n",
		"sub/b.yaml":     "agents: {b: {dir: ../b, trigger: {poll: [./p]}}}\n",
	})
	dir := filepath.Dir(path)
	f := mustLoad(t, path)
	a, b := f.Agent("a"), f.Agent("b")
	got := []string{
		strings.Join(a.Argv(), " "), strings.Join(a.Triggers[0].Poll.Argv(), " "), strings.Join(a.Triggers[0].GateArgv(), " "), strings.Join(b.Triggers[0].Poll.Argv(), " "),
		strings.Join(b.Argv(), " "),
	}
	want := []string{dir + "/client x", dir + "/p y", dir + "/sub/g", dir + "/sub/p", "claude"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !f.Relative || strings.Join(a.Triggers[0].Poll.Command, " ") != "./p y" {
		t.Errorf("%v, %q", f.Relative, a.Triggers[0].Poll.Command) // triggers are known again by what is written
	}
}

// TestNoRuleCanNameIt: what cannot be guarded is refused also with trust-dir.
func TestNoRuleCanNameIt(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml": "version: 1\nagents: {a: {dir: a, trust-dir: true, trigger: {poll: [\"./a/x(1).sh\"]}}}\n", "a/x(1).sh": "",
	})
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "no permission rule can name") {
		t.Error(err)
	}
}
