package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fleetOf writes files, by name, beside each other and returns the path of
// heartbeat.yaml.
func fleetOf(t *testing.T, files map[string]string) string {
	t.Helper()
	path := write(t, files["heartbeat.yaml"])
	for name, text := range files {
		file := filepath.Join(filepath.Dir(path), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestInclude(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml": `
version: 1
include: [more/one.yaml, "teams/**/*.yaml", "none/*.yaml"]
defaults:
  timeout: 2h
  max-attempts: 2
  permissions: {mode: default, allow: [Read]}
  env: {A: outer, B: outer}
  trigger: {poll: [outer]}
agents:
  own: {dir: own}
`,
		"more/one.yaml":        "version: 1\ninclude: [two.yaml]\nagents: {one: {dir: one, trigger: {cron: '@daily', prompt-file: p.txt}}}\n",
		"more/two.yaml":        "agents: {two: {dir: ../two}}\n",
		"more/p.txt":           "from a file",
		"teams/x.yaml":         "defaults: {timeout: 3h, permissions: {deny: [Edit]}, env: {B: inner}, triggers: [{poll: [a]}, {poll: [b]}]}\nagents: {x: {dir: x, env: {C: own}}}\n",
		"teams/deep/in/y.yaml": "agents: {y: {dir: y}}\n",
	})
	dir := filepath.Dir(path)
	f := mustLoad(t, path)
	var got []string
	for _, a := range f.Agents {
		rel, err := filepath.Rel(dir, a.Dir)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.Name+" "+rel+" "+a.Timeout.String()+" "+strings.Join(a.Permissions.Allow, ",")+"-"+strings.Join(a.Permissions.Deny, ","))
	}
	want := []string{
		"own own 2h0m0s Read-", "one more/one 2h0m0s Read-", "two two 2h0m0s Read-",
		"y teams/deep/in/y 2h0m0s Read-", "x teams/x 3h0m0s Read-Edit",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	x := f.Agent("x")
	if diff := cmp.Diff(map[string]string{"A": "outer", "B": "inner", "C": "own"}, x.Env); diff != "" {
		t.Error(diff)
	}
	if x.MaxAttempts != 2 || x.Permissions.Mode != "default" || len(x.Triggers) != 2 || x.File != filepath.Join(dir, "teams/x.yaml") || x.Line != 2 {
		t.Errorf("%+v", x)
	}
	if p := f.Agent("one").Triggers[0].Cron.Prompt; p != "from a file" {
		t.Errorf("prompt %q", p)
	}
	files := []string{"heartbeat.yaml", "more/one.yaml", "more/two.yaml", "teams/deep/in/y.yaml", "teams/x.yaml"}
	for i := range files {
		files[i] = filepath.Join(dir, files[i])
	}
	var read []string
	for _, text := range f.Texts {
		if strings.HasSuffix(text.Path, ".yaml") {
			read = append(read, text.Path)
		}
	}
	if !slices.Equal(read, files) {
		t.Errorf("files %q", read)
	}
	if f.Warnings[0].String() != path+`:3:45: include[2]: no file matches "none/*.yaml" (`+hiddenHint+")" {
		t.Errorf("warnings %v", f.Warnings)
	}
}

// TestIncludeProblems wants each problem with the file that it stands in.
func TestIncludeProblems(t *testing.T) {
	t.Parallel()
	const head = "version: 1\ninclude: [b.yaml]\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"in the included", map[string]string{"heartbeat.yaml": head, "b.yaml": "agents:\n  b: {dir: b, timeout: 5}\n"}, []string{
			`b.yaml:2:24: agents.b.timeout: "5" has no unit (write 5s or 5m, or none)`,
		}},
		{"in the defaults, once", map[string]string{
			"heartbeat.yaml": head + "defaults: {timeout: 5, env: {1: x}, permissions: {mode: x}}\n",
			"b.yaml":         "agents:\n  b: {dir: b, env: {B: b}, permissions: {allow: [Read]}}\n  c: {dir: c}\n",
		}, []string{
			`heartbeat.yaml:3:21: defaults.timeout: "5" has no unit (write 5s or 5m, or none)`,
			`heartbeat.yaml:3:33: defaults.env.1: "1" is not the name of a variable (letters, digits and _, no digit first)`,
			`heartbeat.yaml:3:57: defaults.permissions.mode: "x" is not allowed (allowed: dontAsk, default, acceptEdits, bypassPermissions)`,
		}},
		{"sorted by file", map[string]string{"heartbeat.yaml": head + "x: 1\nagents: {a: {dir: a}}\n", "b.yaml": "y: 1\nagents: {}\n"}, []string{
			"heartbeat.yaml:3:1: x: unknown key (known keys: " + strings.Join(topKeys, ", ") + ")",
			"b.yaml:1:1: y: unknown key (known keys: version, include, defaults, agents)",
		}},
		{"the fleet's own keys", map[string]string{"heartbeat.yaml": head, "b.yaml": "max-sessions: 3\nagents: {b: {dir: b}}\n"}, []string{
			"b.yaml:1:1: max-sessions: unknown key (it belongs in heartbeat.yaml)",
		}},
		{"no YAML", map[string]string{"heartbeat.yaml": head, "b.yaml": "a: [\n"}, []string{"b.yaml:1:1: did not find expected node content (the [ that begins here needs its ])"}},
		{"another version", map[string]string{"heartbeat.yaml": head, "b.yaml": "version: 2\nagents: {b: {dir: b}}\n"}, []string{
			`b.yaml:1:10: version: version "2" is not known (write version: 1)`,
		}},
		{"missing", map[string]string{"heartbeat.yaml": head + "agents: {a: {dir: a}}\n"}, []string{
			"heartbeat.yaml:2:11: include[0]: cannot read b.yaml: no such file or directory (paths are relative to this file)",
		}},
		{"a folder", map[string]string{"heartbeat.yaml": head + "agents: {a: {dir: a}}\n", "b.yaml/x": ""}, []string{
			"heartbeat.yaml:2:11: include[0]: cannot read b.yaml: it is not a regular file",
		}},
		{"itself", map[string]string{"heartbeat.yaml": "version: 1\ninclude: [./heartbeat.yaml]\nagents: {a: {dir: a}}\n"}, []string{
			"heartbeat.yaml:2:11: include[0]: heartbeat.yaml includes itself (remove one of the includes)",
		}},
		{"in a circle", map[string]string{"heartbeat.yaml": head, "b.yaml": "include: [c.yaml]\n", "c.yaml": "include: [b.yaml]\nagents: {c: {dir: c}}\n"}, []string{
			"c.yaml:1:11: include[0]: b.yaml includes itself (remove one of the includes)",
		}},
		{"twice", map[string]string{"heartbeat.yaml": "version: 1\ninclude: [b.yaml, '*.yml']\n", "b.yaml": "include: [c.yml]\n", "c.yml": "agents: {c: {dir: c}}\n"}, []string{
			"heartbeat.yaml:2:19: include[1]: c.yml is included already, at b.yaml:1 (remove one of them)",
		}},
		{"one name", map[string]string{"heartbeat.yaml": head + "agents: {b: {dir: a}}\n", "b.yaml": "agents:\n  b: {dir: b}\n"}, []string{
			"b.yaml:2:3: agents.b: is declared already, at heartbeat.yaml:3 (give it another name)",
		}},
		{"one directory", map[string]string{"heartbeat.yaml": head + "agents: {a: {dir: x}}\n", "b.yaml": "agents:\n  b: {dir: x/y}\n"}, []string{
			`b.yaml:2:12: agents.b.dir: lies inside the directory of agent "a" (heartbeat.yaml:3): DIR/x/y (give each agent a directory of its own, none inside another)`,
		}},
		{"nothing", map[string]string{"heartbeat.yaml": head, "b.yaml": "version: 1\n"}, []string{
			"heartbeat.yaml:1:1: no agents are declared (agents: {NAME: {dir: DIRECTORY}})",
		}},
		{"not a list", map[string]string{"heartbeat.yaml": "version: 1\ninclude: b.yaml\nagents: {a: {dir: a}}\n"}, []string{
			`heartbeat.yaml:2:10: include: must be a list, not "b.yaml" (for example [agents/*.yaml])`,
		}},
		{"a bad pattern", map[string]string{"heartbeat.yaml": "version: 1\ninclude: ['x/[*.yaml', '${HEARTBEAT_TEST_NOT_SET}']\nagents: {a: {dir: a}}\n"}, []string{
			`heartbeat.yaml:2:11: include[0]: "x/[*.yaml" is not a valid pattern (` + patternHint + `)`,
			`heartbeat.yaml:2:24: include[1]: the variable HEARTBEAT_TEST_NOT_SET is not set (set it where heartbeat is started, as with export HEARTBEAT_TEST_NOT_SET=…, or write the path)`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := fleetOf(t, tt.files)
			_, err := Load(path)
			problems, ok := err.(Problems)
			if !ok {
				t.Fatalf("%T: %v", err, err)
			}
			var got []string
			for _, p := range problems {
				got = append(got, strings.ReplaceAll(strings.TrimPrefix(strings.ReplaceAll(p.String(), filepath.Dir(path)+"/", "DIR/"), "DIR/"), " DIR/b.yaml", " b.yaml"))
			}
			for i := range got { // messages name files as absolute as the file was named
				if tt.name != "one directory" {
					got[i] = strings.ReplaceAll(got[i], "DIR/", "")
				} else {
					got[i] = strings.Replace(got[i], "(DIR/", "(", 1)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestIncludedFilesAreShownAsTheFirst(t *testing.T) {
	path := fleetOf(t, map[string]string{"heartbeat.yaml": "version: 1\ninclude: [sub/b.yaml]\n", "sub/b.yaml": "agents: {b: {}}\n"})
	t.Chdir(filepath.Dir(filepath.Dir(path)))
	_, err := Load(filepath.Join(filepath.Base(filepath.Dir(path)), "heartbeat.yaml"))
	want := filepath.Base(filepath.Dir(path)) + "/sub/b.yaml:1:10: agents.b.dir: is missing (write dir: DIRECTORY)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestProgramsThatAreNotThere: what could not be run now is worth a word, and
// once for all agents that share it.
func TestProgramsThatAreNotThere(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml": `
version: 1
defaults:
  command: [no-such-client]
  trigger: {poll: [./poll.sh]}
agents:
  one: {dir: one}
  two: {dir: two, command: [heartbeat, simulate], trigger: {poll: [./made.sh], gate: [sh, -c, ""]}}
  three: {dir: three, command: [client], env: {PATH: /nonexistent}}
  four: {dir: three-and-one, command: [client], env-file: x.env, trigger: {poll: [client], gate: [/]}}
  five: {dir: new, command: [./client]}
  six: {dir: new-too, command: [~/client], trigger: {poll: ["${BIN}/poll"]}}
`,
		"one/.keep": "", "two/.keep": "", "made.sh": "#!/bin/sh\n", "three/.keep": "", "three-and-one/poll.sh": "",
	})
	dir := filepath.Dir(path)
	var got []string
	f := mustLoad(t, path)
	for _, w := range f.Warnings {
		got = append(got, strings.ReplaceAll(w.String(), dir, "DIR"))
	}
	want := []string{
		`DIR/heartbeat.yaml:4:13: defaults.command[0]: no-such-client is not found in PATH (install it, or write its whole path)`,
		`DIR/heartbeat.yaml:5:20: defaults.trigger.poll[0]: ./poll.sh is not there (it is looked for at DIR/poll.sh)`,
		`DIR/heartbeat.yaml:8:68: agents.two.trigger.poll[0]: ./made.sh is not executable (chmod +x DIR/made.sh)`,
		`DIR/heartbeat.yaml:9:33: agents.three.command[0]: client is not found in PATH (install it, or write its whole path)`,
		`DIR/heartbeat.yaml:10:59: agents.four.env-file: cannot read env-file "DIR/x.env": no such file or directory (no session starts without its variables)`,
		`DIR/heartbeat.yaml:10:83: agents.four.trigger.poll[0]: client is not found in PATH (install it, or write its whole path)`,
		`DIR/heartbeat.yaml:10:99: agents.four.trigger.gate[0]: / is not a program (install it there, or write another path)`,
		`DIR/heartbeat.yaml:11:30: agents.five.command[0]: ./client is not there (it is looked for at DIR/client)`,
		`DIR/heartbeat.yaml:12:33: agents.six.command[0]: ~/client is not expanded: ~ and ${VAR} work in dir and other paths of this file (write its whole path)`,
		`DIR/heartbeat.yaml:12:61: agents.six.trigger.poll[0]: ${BIN}/poll is not expanded: ~ and ${VAR} work in dir and other paths of this file (write its whole path)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, a := range f.Agents {
		if f.Missing[a.Name] != (a.Name == "five" || a.Name == "six") {
			t.Errorf("%s: missing is %v", a.Name, f.Missing[a.Name])
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{
		"heartbeat.yaml": `
version: 1
include: [sub/b.yaml]
defaults: {permissions: {allow: [Write, "Write(out/**)"]}}
agents:
  around: {dir: around}
`,
		"sub/b.yaml": `agents:
  b: {dir: ../../elsewhere, permissions: {deny: ["Edit(x)", "Write(/etc/**)"]}, trigger: {cron: "@daily", prompt: x, missed: all}}
  c: {dir: ../../third, trigger: {cron: "@daily", prompt: x, missed: all, overlap: queue}}
`,
	})
	dir := filepath.Dir(path)
	var got []string
	for _, w := range mustLoad(t, path).Warnings {
		got = append(got, strings.ReplaceAll(w.String(), dir, "DIR"))
	}
	want := []string{
		`DIR/heartbeat.yaml:4:41: defaults.permissions.allow[1]: "Write(out/**)" never matches: only Edit rules apply to paths (write Edit(out/**))`,
		`DIR/sub/b.yaml:2:61: agents.b.permissions.deny[1]: "Write(/etc/**)" never matches: only Edit rules apply to paths (write Edit(/etc/**))`,
		`DIR/sub/b.yaml:2:126: agents.b.trigger.missed: with overlap: skip, the second missed fire finds the first one still queued and is dropped (add overlap: queue)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
