package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook/client"
)

// problemsOf loads a text and returns its problems without the file's name.
func problemsOf(t *testing.T, path string) []string {
	t.Helper()
	f, err := Load(path)
	if err == nil {
		t.Fatalf("accepted: %+v", f)
	}
	problems, ok := errors.AsType[Problems](err)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	var out []string
	for _, p := range problems {
		rest, ok := strings.CutPrefix(p.String(), path+":")
		if !ok || p.File != path {
			t.Errorf("no file in %q", p)
		}
		out = append(out, rest)
	}
	if len(strings.Split(problems.Error(), "\n")) != len(out) {
		t.Errorf("not a line each: %s", problems)
	}
	return out
}

// TestProblemsGolden compares the problems of each file in testdata/problems
// with the .txt beside it.
func TestProblemsGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	t.Setenv("HOME", "/nonexistent/home")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := strings.Join(problemsOf(t, file), "\n") + "\n"
			wd, err := filepath.Abs(".")
			if err != nil {
				t.Fatal(err)
			}
			got = strings.ReplaceAll(got, wd, "WD")
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAgentFields has one wrong field each, in an agent that is right else.
func TestAgentFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ field, want string }{
		{`timeout: 30`, `5:14: agents.a.timeout: "30" has no unit (write 30s or 30m, or none)`},
		{`timeout: "1.5"`, `has no unit (write 1.5s or 1.5m, or none)`},
		{`idle-interval: 5`, `"5" has no unit (write 5s or 5m)`},
		{`idle-interval: 31d`, `31d is too long (at most 30d)`},
		{`idle-interval: none`, `"none" is not a duration (for example 30s, 10m, 2h, 1d or 1w)`},
		{`idle-interval: 0s`, `0s is too short (more than 0)`},
		{`timeout: -5m`, `-5m is too short (more than 0, or none)`},
		{`timeout: soon`, `"soon" is not a duration (for example 30s, 10m, 2h, 1d or 1w, or none)`},
		{`timeout: 1d-3h`, `"1d-3h" is not a duration`},
		{`timeout: 99999999d`, `is too long`},
		{`timeout: 9999999h`, `9999999h is too long (at most 365d)`},
		{`timeout: 9999h`, `9999h is too long (at most 365d)`},
		{`timeout: 500`, `"500" has no unit (write 500s or 500m, or in milliseconds 500ms, or none)`},
		{`timeout: [1h]`, `5:14: agents.a.timeout: must be a single value, not a list`},
		{`timeout:`, `5:5: agents.a.timeout: has no value (write one, or remove the key)`},
		{`timeout: !!binary aGk=`, `the tag !!binary is not known`},
		{`mode: drian`, `5:11: agents.a.mode: "drian" is not allowed (did you mean drain? allowed: drain, persist)`},
		{`mode: 7`, `"7" is not allowed (allowed: drain, persist)`},
		{`on-orphan: dead-letter`, `did you mean deadletter? allowed: retry, deadletter, drop`},
		{`on-idle: sleep`, `allowed: tick, release`},
		{`context: resumed`, `"resumed" is not allowed (did you mean resume? allowed: entry, session, resume)`},
		{`background: none`, `allowed: wait, ignore`},
		{`settings: user`, `allowed: project, local, flag, only`},
		{`foreign-stop-hooks: block`, `allowed: learn, gate, free`},
		{`permissions: {mode: auto}`, `5:25: agents.a.permissions.mode: "auto" is not allowed: a person is asked about compound commands, and nobody is there (allowed: dontAsk, default, acceptEdits, bypassPermissions)`},
		{`permissions: {mode: plan}`, `5:25: agents.a.permissions.mode: "plan" is not allowed: nothing may change a file until a person approves a plan, and nobody is there (allowed: dontAsk, default, acceptEdits, bypassPermissions)`},
		{`permissions: {alow: [Read]}`, `5:19: agents.a.permissions.alow: unknown key (did you mean allow?)`},
		{`permissions: {allow: Read}`, `must be a list, not "Read" (for example [Read, "Bash(git *)"])`},
		{`permissions: {allow: [Read, ""]}`, `agents.a.permissions.allow[1]: is blank`},
		{`permissions: {allow: [read]}`, `agents.a.permissions.allow[0]: Claude Code refuses "read": names of tools begin with a capital letter (did you mean Read?)`},
		{`permissions: {deny: [Read, "Bash("]}`, `5:32: agents.a.permissions.deny[1]: Claude Code refuses "Bash(": it is neither TOOL nor TOOL(WHAT)`},
		{`permissions: {allow: ["*"]}`, `a * can stand only for the tools of one server`},
		{`permissions: [Read]`, `must be a mapping, not a list`},
		{`inbox: "a\nb"`, `agents.a.inbox: holds control characters (remove them)`},
		{`inbox: "a\e[31m"`, `agents.a.inbox: holds control characters (remove them)`},
		{`env-file: "~bob/x.env"`, `only your own ~ is supported`},
		{`env-file: `, `has no value`},
		{`env-allow: HOME`, `must be a list, not`},
		{`env-allow: ["A=b"]`, `"A=b" is not a pattern for names of variables`},
		{`env-deny: ["[A"]`, `"[A" is not a pattern for names of variables (for example "AWS_*")`},
		{`stall-timeout: 5`, `"5" has no unit`},
		{`env: {1A: x}`, `"1A" is not the name of a variable`},
		{`env: {HEARTBEAT_SESSION: x}`, `agents.a.env.HEARTBEAT_SESSION: is set by heartbeat itself`},
		{`env: {A: }`, `has no value (write "" for an empty one)`},
		{`env: [A=b]`, `must be a mapping, not a list`},
		{`env: {A: "x\0y"}`, `holds a NUL character`},
		{`command: claude --model x`, `must be a list of words, not "claude --model x" (write [claude, --model, x])`},
		{`command: []`, `5:14: agents.a.command: is empty`},
		{`command: [""]`, `agents.a.command[0]: is blank`},
		{`command: [x, [y]]`, `agents.a.command[1]: must be a single value, not a list`},
		{`kickoff: /clear`, `a text that begins with / is a command to the client`},
		{`kickoff: " --help"`, `a text that begins with - is a flag to the client`},
		{`kickoff: ""`, `is blank`},
		{`kickoff: "a\eb"`, `holds control characters`},
		{`max-attempts: 0`, `0 is too small (at least 1)`},
		{`max-attempts: many`, `"many" is not a whole number (for example 5)`},
		{`max-restarts: 1.5`, `"1.5" is not a whole number`},
		{`max-continuations: -1`, `-1 is too small (at least 1)`},
		{`max-entry: 11MiB`, `11MiB is out of range (from 1 to 10MiB)`},
		{`max-entry: 0`, `0 is out of range`},
		{`max-entry: 5 furlongs`, `"5 furlongs" is not a size`},
		{`timezone: Europe/Atlantis`, `the time zone "Europe/Atlantis" is not known`},
		{`inbox: ~root/in`, `only your own ~ is supported`},
		{`inbox: "${HEARTBEAT_TEST_NOT_SET}/in"`, `the variable HEARTBEAT_TEST_NOT_SET is not set`},
		{`inbox: "${HEARTBEAT_TEST:-x}/in"`, `${HEARTBEAT_TEST:-x} is not expanded (write ${NAME}, without a default, for a variable)`},
		{`inbox: "$$$HOME/in"`, `$$$HOME/in is not expanded`},
		{`inbox: $HOME/in`, `agents.a.inbox: $HOME/in is not expanded (write ${HOME} for a variable, or $$ for a $ in a name)`},
		{`env-file: "${HOME/x"`, `${HOME/x is not expanded (write ${NAME} for a variable, or $$ for a $ in a name)`},
		{`trigger: {cron: "@daily", prompt-file: $(pwd)/x}`, `$(pwd)/x is not expanded`},
		{`timezone: 5`, `agents.a.timezone: 5 must be a string (write "5")`},
		{`max-attempts: "3"`, `agents.a.max-attempts: "3" is a string (write 3, without quotes)`},
		{`trigger: {cron: "@daily", prompt: x, seconds: "true"}`, `"true" is a string (write it without quotes)`},
		{`timeout: +5s`, `"+5s" is not a duration`},
		{`max-attempts: 3000000000`, `3000000000 is too large (at most 2147483647)`},
		{`idle_interval: 5m`, `5:5: agents.a.idle_interval: unknown key (did you mean idle-interval?)`},
		{`IdleInterval: 5m`, `did you mean idle-interval?`},
		{`tigger: {}`, `did you mean trigger?`},
		{`cron: "@daily"`, `5:5: agents.a.cron: unknown key (it belongs below trigger:)`},
		{`allow: [Read]`, `unknown key (it belongs below permissions:)`},
		{`favourite-colour: red`, `unknown key (known keys: dir, command,`},
		{`mode: drain` + "\n    mode: drain", `6:5: agents.a.mode: is given twice, first on line 5 (remove one of them)`},
		{`? [a]` + "\n    : b", `a key must be a word, not a list`},
	} {
		path := write(t, "version: 1\nagents:\n  a:\n    dir: x\n    "+tt.field+"\n")
		got := problemsOf(t, path)
		if len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.field, got, tt.want)
		}
	}
}

// TestTriggerFields has one wrong trigger each.
func TestTriggerFields(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ field, want string }{
		{`trigger: {}`, `5:14: agents.a.trigger: does not say what triggers it (write one of cron, watch, poll, webhook)`},
		{`trigger:`, `does not say what triggers it`},
		{`trigger: daily`, `must be a mapping, not "daily"`},
		{`trigger: [{cron: "@daily", prompt: x}]`, `must be a mapping, not a list (write triggers: for several)`},
		{`triggers: {cron: "@daily", prompt: x}`, `must be a list, not a mapping (write trigger: for one)`},
		{`triggers: [{cron: "@daily", prompt: x}, 5]`, `agents.a.triggers[1]: must be a mapping, not "5"`},
		{`trigger: {cron: "@daily", watch: ["*"], prompt: x}`, `cron and watch are both given`},
		{`trigger: {cron: "@daily"}`, `agents.a.trigger.prompt: is missing`},
		{`trigger: {watch: ["*"]}`, `agents.a.trigger.prompt: is missing`},
		{`trigger: {cron: "@daily", prompt: x, prompt-file: y}`, `prompt and prompt-file are both given`},
		{`trigger: {cron: "@daily", prompt-file: none.txt}`, `cannot read prompt: `},
		{`trigger: {cron: "@daily", prompt-file: "."}`, `is not a regular file`},
		{`trigger: {cron: "@daily", prompt: " "}`, `agents.a.trigger.prompt: is blank`},
		{`trigger: {cron: "@daily", prompt: "{{.Path}}"}`, `known are {{.At}} and {{.Label}}`},
		{`trigger: {cron: "@daily", prompt: "{{if}}"}`, `5:39: agents.a.trigger.prompt: the template does not work: missing value for if`},
		{`trigger: {cron: "@daily", prompt: "{{.At.Foo}}"}`, `the template does not work: <.At.Foo>: can't evaluate field Foo in type time.Time`},
		{`trigger: {cron: "@daily", prompt: "{{len .}}"}`, `error calling len: len of type the prompt's data`},
		{`trigger: {cron: "@daily", prompt: "{{range 1000000000}}xxxxxxxx{{end}}"}`, `the prompt is over 1 MiB`},
		{`trigger: {poll: [x], every: 10ms}`, `5:33: agents.a.trigger.every: 10ms is too short (at least 1s: each run starts a process)`},
		{`trigger: {poll: [x], every: 0s}`, `0s is too short (at least 1s: each run starts a process)`},
		{`trigger: {poll: [x], every: -5s}`, `-5s is too short (at least 1s: each run starts a process)`},
		{`trigger: {watch: ["{}"], prompt: x}`, `"{}" never matches`},
		{`trigger: {watch: ["{,}"], prompt: x}`, `"{,}" never matches`},
		{`trigger: {watch: ["*"], prompt: "{{.Pth}}"}`, `known are {{.Path}}`},
		{`trigger: {poll: [x], prompt: "{{.Path}}"}`, `known are {{.Output}} and, with split: json, {{.JSON}}`},
		{`trigger: {cron: "0 0 30 2 *", prompt: x}`, `5:21: agents.a.trigger.cron: "0 0 30 2 *": it never fires`},
		{`trigger: {cron: "0 0 9 * * *", prompt: x}`, `it has 6 fields (write five: minute, hour, day of month, month, day of week, for example "*/15 9-18 * * 1-5"; for a seconds field in front of them write seconds: true beside it)`},
		{`trigger: {cron: "0 0 9 * * * *", seconds: true, prompt: x}`, `it has 7 fields (write five or six: second (may be left out), minute`},
		{`trigger: {cron: "60 0 9 * * *", seconds: true, prompt: x}`, `"60 0 9 * * *": there is no second 60`},
		{`trigger: {cron: "@every 10s", prompt: x}`, `5:29: agents.a.trigger.cron: "@every 10s": 10s is too short (at least "@every 1m"; seconds: true beside it allows less)`},
		{`trigger: {cron: "@daily", seconds: perhaps, prompt: x}`, `"perhaps" is neither true nor false`},
		{`trigger: {poll: [x], seconds: true}`, `a poll trigger has no seconds`},
		{`trigger: {cron: "61 * * * *", prompt: x}`, `5:21: agents.a.trigger.cron: "61 * * * *": there is no minute 61 (write 0 to 59, or *)`},
		{`trigger: {cron: "0 9,24 * * *", prompt: x}`, `5:26: agents.a.trigger.cron: "0 9,24 * * *": there is no hour 24 (write 0 to 23, or *)`},
		{`trigger: {cron: 0 22-6 * * *, prompt: x}`, `5:23: agents.a.trigger.cron: "0 22-6 * * *": hour: the range 22-6 goes backwards (write 22-23,0-6)`},
		{`trigger: {cron: "* * *", prompt: x}`, `5:21: agents.a.trigger.cron: "* * *": it has 3 fields (write five: minute, `},
		{`trigger: {cron: "", prompt: x}`, `agents.a.trigger.cron: is blank`},
		{`trigger: {cron: "TZ=UTC 0 9 * * *", prompt: x}`, `set timezone: instead`},
		{`trigger: {cron: "@daily", prompt: x, timezone: Nowhere}`, `the time zone "Nowhere" is not known`},
		{`trigger: {cron: "@daily", prompt: x, missed: al}`, `"al" is not allowed (did you mean all? allowed: skip, once, all)`},
		{`trigger: {cron: "@daily", prompt: x, overlap: wait}`, `"wait" is not allowed (allowed: skip, queue)`},
		{`trigger: {cron: "@daily", prompt: x, jitter: 5}`, `"5" has no unit (write 5s or 5m, or none)`},
		{`trigger: {cron: "@daily", prompt: x, jitter: 25h}`, `25h is too long (at most 1d)`},
		{`trigger: {cron: "@daily", prompt: x, grace: -1m}`, `-1m is too short`},
		{`trigger: {watch: ["*"], prompt: x, overlap: skip}`, `a watch trigger has no overlap (remove it: each state of a file, and each request, is a prompt of its own)`},
		{`trigger: {cron: "@daily", prompt: x, gate: "test -e open"}`, `agents.a.trigger.gate: must be a list of words, not "test -e open" (write [test, -e, open])`},
		{`trigger: {cron: "@daily", prompt: x, gate: []}`, `agents.a.trigger.gate: is empty`},
		{`trigger: {poll: [x], batch: true}`, `a poll trigger has no batch`},
		{`trigger: {watch: ["*"], prompt: x, removed: maybe}`, `"maybe" is neither true nor false (write true or false)`},
		{`trigger: {poll: [x], dedupe: line}`, `"line" is not allowed (allowed: none, content, key)`},
		{`trigger: {poll: [x], dedupe: key}`, `agents.a.trigger.dedupe: needs a key (write key: "{{.JSON.id}}"`},
		{`trigger: {poll: [x], key: "{{.Output}}"}`, `agents.a.trigger.key: is only used with dedupe: key`},
		{`trigger: {poll: [x], dedupe: key, key: "{{.Id}}"}`, `agents.a.trigger.key: there is no {{.Id}} (known are {{.Output}} and, with split: json, {{.JSON}})`},
		{`trigger: {poll: [x], prompt: "{{.JSON.id}}"}`, `agents.a.trigger.prompt: there is no {{.JSON}} (known are {{.Output}} and, with split: json, {{.JSON}})`},
		{`trigger: {poll: [x], split: lines, prompt: "{{with $.JSON}}x{{end}}"}`, `there is no {{.JSON}}`},
		{`trigger: {poll: [x], prompt: '{{define "t"}}{{.JSON}}{{end}}{{template "t" .}}'}`, `JSON`},
		{`trigger: {poll: [x], split: whole, dedupe: key, key: "{{.JSON.id}}"}`, `agents.a.trigger.key: there is no {{.JSON}}`},
		{`trigger: {cron: "@daily", prompt: x, every: 5m}`, `a cron trigger has no every`},
		{`trigger: {watch: ["*"], prompt: x, grace: 5m}`, `a watch trigger has no grace`},
		{`trigger: {poll: [x], split: jsn}`, `"jsn" is not allowed (did you mean json? allowed: whole, lines, json)`},
		{`trigger: {poll: x y}`, `write [x, y]`},
		{`trigger: {poll: [x], evry: 5m}`, `did you mean every?`},
		{`trigger: {poll: [x], every: 5}`, `"5" has no unit`},
		{`trigger: {watch: "*.md", prompt: x}`, `must be a list, not "*.md" (for example ["incoming/**/*.md"])`},
		{`trigger: {watch: [], prompt: x}`, `agents.a.trigger.watch: is empty`},
		{`trigger: {watch: ["[a"], prompt: x}`, `agents.a.trigger.watch[0]: "[a" is not a valid pattern`},
		{`trigger: {watch: ["/etc/*"], prompt: x}`, `"/etc/*" is absolute`},
		{`trigger: {watch: ["~/x"], prompt: x}`, `is absolute`},
		{`trigger: {watch: ["../x/**"], prompt: x}`, `leads outside the agent's dir`},
		{`trigger: {watch: ["a/{b,../..}/c"], prompt: x}`, `leads outside the agent's dir`},
		{`trigger: {watch: ["./a"], prompt: x}`, `"./a" never matches (write a)`},
		{`trigger: {watch: [".heartbeat/*"], prompt: x}`, `heartbeat's own files change all the time`},
		{`trigger: {name: "a b", poll: [x]}`, `"a b" is not a name`},
		{`triggers: [{name: one, poll: [x]}, {name: ONE, poll: [y]}]`, `the name "ONE" is taken by the trigger on line 5`},
		{"trigger: {poll: [x]}\n    triggers: [{poll: [y]}]", `6:15: agents.a.triggers: trigger and triggers are both given`},
	} {
		path := write(t, "version: 1\nagents:\n  a:\n    dir: x\n    "+tt.field+"\n")
		got := problemsOf(t, path)
		if len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.field, got, tt.want)
		}
	}
}

// TestWholeFile has files that are wrong as a whole.
func TestWholeFile(t *testing.T) {
	t.Parallel()
	const agent = "agents: {a: {dir: x}}\n"
	for _, tt := range []struct{ text, want string }{
		{"", "1:1: the file is empty"},
		{"# nothing\n", "1:1: the file is empty"},
		{"- a\n", "1:1: must be a mapping, not a list"},
		{agent, "1:1: version: is missing (write version: 1)"},
		{"version: 2\n" + agent, `1:10: version: version "2" is not known`},
		{"version: 1\n", "1:1: no agents are declared"},
		{"version: 1\nagents:\n", "2:1: agents: no agents are declared"},
		{"version: 1\nagents: [a]\n", "2:9: agents: must be a mapping, not a list"},
		{"version: 1\nmax-sesions: 3\n" + agent, "2:1: max-sesions: unknown key (did you mean max-sessions?)"},
		{"version: 1\ntimeout: 3h\n" + agent, "2:1: timeout: unknown key (it belongs in an agent, or in defaults:)"},
		{"version: 1\nmax-sessions: 0\n" + agent, "0 is too small (at least 1)"},
		{"version: 1\nname: a/b\n" + agent, `2:7: name: "a/b" is not a name`},
		{"version: 1\n" + agent + "---\nversion: 1\n", "3:1: a second document begins"},
		{"version: 1\n" + agent + "---\n\ta: 1\n", "4:2: found character that cannot start any token (YAML is indented with spaces)"},
		{"version: 1\nagents:\n\ta: b\n", "(YAML is indented with spaces)"},
		{"version: 1\nagents:\n  a:\n    dir: x\n    trigger:\n      cron: * * * * *\n", "6:7: did not find expected alphabetic or numeric character (put it in quotes: a bare * begins an alias)"},
		{"version: 1\nagents: {a: {dir: *x}}\n", "2:1: unknown anchor 'x' referenced"},
		{"version: 1\nx: \xff\n", "2:4: it is not UTF-8 (save it as UTF-8)"},
		{"version: 1\nx: \x01\n", "2:1: control characters are not allowed"},
		{"version: 1\nagents: {a: {}}\n", "2:10: agents.a.dir: is missing (write dir: DIRECTORY)"},
		{"version: 1\nagents: {a: x}\n", `2:13: agents.a: must be a mapping, not "x"`},
		{"version: 1\nagents: {-a: {dir: x}}\n", `2:10: agents.-a: "-a" is not a name`},
		{"version: 1\nagents: {a: {dir: x}, a: {dir: y}}\n", "2:23: agents.a: is given twice, first on line 2"},
		{"version: 1\nagents: {a: {dir: x}, A: {dir: y}}\n", `2:23: agents.A: differs from agent "a" (line 2) only in case`},
		{"version: 1\nagents: {a: {dir: ''}}\n", "agents.a.dir: is blank"},
		{"version: 1\nagents: {a: {dir: '${HEARTBEAT_TEST_NOT_SET}'}}\n", "the variable HEARTBEAT_TEST_NOT_SET is not set"},
		{"version: 1\nagents: {a: {dir: x, trigger: &t {poll: [a], <<: *t}}}\nd: 1\n", "3:1: d: unknown key"},
		{
			"version: 1\nmax-sessions: 2\nagents: {a: &t {dir: x, mode: persist, on-idle: tick}, b: {<<: *t, dir: y}, c: {dir: z}}\n",
			"2:15: max-sessions: 2 sessions at once, and 2 agents with mode: persist and on-idle: tick keep theirs for ever (write max-sessions: 3, or on-idle: release)",
		},
	} {
		got := problemsOf(t, write(t, tt.text))
		if len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("%q:\n got %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

// TestAllFaultsOfAllPrompts: one run names every field that does not exist.
func TestAllFaultsOfAllPrompts(t *testing.T) {
	t.Parallel()
	text := `version: 1
agents:
  a:
    dir: a
    triggers:
      - {cron: "@daily", prompt: "{{.Foo}} {{.At}} {{.Bar}}"}
      - {watch: [x], prompt: '{{with .Name}}{{.}} {{.Inner}} {{$.Pth}}{{else}}{{.Nme}}{{end}}'}
      - poll: [x]
        prompt: |
          Two lines:
          {{.Outptu}}
      - poll: [x]
        prompt: |
          Two lines:
          {{.Output
`
	want := []string{
		`6:37: agents.a.triggers[0].prompt: there is no {{.Foo}} (known are {{.At}} and {{.Label}})`,
		`6:54: agents.a.triggers[0].prompt: there is no {{.Bar}} (known are {{.At}} and {{.Label}})`,
		`7:65: agents.a.triggers[1].prompt: there is no {{.Pth}} (known are {{.Path}}, {{.AbsPath}}, {{.Name}}, {{.Event}} and {{.Paths}})`,
		`7:81: agents.a.triggers[1].prompt: there is no {{.Nme}} (known are {{.Path}}, {{.AbsPath}}, {{.Name}}, {{.Event}} and {{.Paths}})`,
		`11:1: agents.a.triggers[2].prompt: there is no {{.Outptu}} (known are {{.Output}} and, with split: json, {{.JSON}})`,
		`15:1: agents.a.triggers[3].prompt: the template does not work: unclosed action, in line 2 of the prompt (known are {{.Output}} and, with split: json, {{.JSON}})`,
	}
	if diff := cmp.Diff(want, problemsOf(t, write(t, text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProblemInDefaultsIsReportedOnce(t *testing.T) {
	t.Parallel()
	text := `version: 1
defaults:
  timeout: 5
  permissions: {mode: x, deny: y}
  env: {1: a}
  trigger: {cron: "x", prompt: y, colour: red}
  shape: round
agents:
  a: {dir: a}
  b: {dir: b, permissions: {allow: [Read]}, env: {B: b}}
  c: {dir: c, timeout: 1h}
`
	want := []string{
		`3:12: defaults.timeout: "5" has no unit (write 5s or 5m, or none)`,
		`4:23: defaults.permissions.mode: "x" is not allowed (allowed: dontAsk, default, acceptEdits, bypassPermissions)`,
		`4:32: defaults.permissions.deny: must be a list, not "y" (for example [Read, "Bash(git *)"])`,
		`5:12: defaults.env.1: "1" is not the name of a variable (letters, digits and _, no digit first)`,
		`6:19: defaults.trigger.cron: "x": it has 1 field (write five: minute, hour, day of month, month, day of week, for example "*/15 9-18 * * 1-5")`,
		`6:35: defaults.trigger.colour: unknown key (known keys: ` + strings.Join(triggerKeys, ", ") + `)`,
		`7:3: defaults.shape: unknown key (known keys: ` + strings.Join(agentKeys, ", ") + `)`,
	}
	if diff := cmp.Diff(want, problemsOf(t, write(t, text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManyProblems: a file that is something else does not take minutes, and
// does not fill the screen for ever.
func TestManyProblems(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("version: 1\nagents: {a: {dir: a}}\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	got := problemsOf(t, write(t, b.String()))
	if len(got) != mostProblems+1 || !strings.Contains(got[mostProblems], "4000 more problems or warnings are not listed") {
		t.Errorf("%d problems, the last one %s", len(got), got[len(got)-1])
	}
}

func TestDirectoriesCollide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, one, two string
		want           string
	}{
		{"same", "work", "work", `is also the directory of agent "one" (line 3)`},
		{"spelt otherwise", "work", "./x/../work/", `is also the directory of agent "one" (line 3)`},
		{"absolute", "work", "DIR/work", `is also the directory of agent "one" (line 3)`},
		{"link", "work", "link", `is also the directory of agent "one" (line 3)`},
		{"link to a parent", "work", "up/work", `is also the directory of agent "one" (line 3)`},
		{"new below a link", "work/new", "link/new", `is also the directory of agent "one" (line 3)`},
		{"nested", "work", "work/inner", `lies inside the directory of agent "one" (line 3)`},
		{"nested through a link", "work", "link/inner/deep", `lies inside the directory of agent "one" (line 3)`},
		{"around", "work/inner", "work", `contains the directory of agent "one" (line 3)`},
		{"around all", "work", "/", `is a folder of the system`},
		{"file", "work", "file", `is not a directory`},
		{"loop", "work", "loop", `cannot resolve`},
		{"link to nowhere", "work", "dangling", `is a broken link`},
		{"below a file", "work", "file/x", `cannot resolve`},
		{"neighbours", "work", "work-2", ""},
		{"neighbours with a dot", "work", "work.d", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "")
			dir := filepath.Dir(path)
			for _, err := range []error{
				os.Mkdir(filepath.Join(dir, "work"), 0o700),
				os.Symlink("work", filepath.Join(dir, "link")),
				os.Symlink(dir, filepath.Join(dir, "up")),
				os.Symlink("loop", filepath.Join(dir, "loop")),
				os.Symlink("gone", filepath.Join(dir, "dangling")),
				os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
				os.WriteFile(path, fmt.Appendf(nil, "version: 1\nagents:\n  one: {dir: %s}\n  two: {dir: %s}\n", tt.one, strings.Replace(tt.two, "DIR", dir, 1)), 0o600),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if tt.want == "" {
				mustLoad(t, path)
				return
			}
			got := problemsOf(t, path)
			if len(got) != 1 || !strings.HasPrefix(got[0], "4:14: agents.two.dir: ") || !strings.Contains(got[0], tt.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"idle_interval": "idle-interval", "timout": "timeout", "comand": "command", "persmissions": "permissions",
		"dri": "dir", "on-orphans": "on-orphan", "maxattempts": "max-attempts", "perm": "permissions",
	} {
		if got := Nearest(word, agentKeys); len(got) == 0 || got[0] != want {
			t.Errorf("Nearest(%q) = %q, want %q first", word, got, want)
		}
	}
	names := []string{"triage", "builder", "build-2", "build-3", "build-4", "Reviewer", "x"}
	for typed, want := range map[string][]string{
		"triage":   {"triage"},
		"traige":   {"triage"},
		"tri":      {"triage"},
		"reviewer": {"Reviewer"},
		"builde":   {"builder", "build-2", "build-3"},
		"zzz":      nil,
		"d":        {"x"},
		"":         {"x"},
	} {
		if got := Nearest(typed, names); !slices.Equal(got, want) {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}

// What is proposed instead of a command line does the same.
func TestCommandLinesBecomeLists(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`poll: ./next.sh --all`:      `(write [./next.sh, --all])`,
		`poll: "ls -t in | head -1"`: `(write [sh, -c, "ls -t in | head -1"])`,
		`poll: 'echo "$X"'`:          `(write [sh, -c, "echo \"$X\""])`,
		`poll: []`:                   `(write a list, for example [./next-ticket.sh])`,
		`poll: {}`:                   `(write a list, for example [./next-ticket.sh])`,
	} {
		got := problemsOf(t, write(t, "version: 1\nagents:\n  one: {dir: one, trigger: {"+line+"}}\n"))
		if len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("%s: %q, want %s", line, got, want)
		}
	}
}

// TestEachPermissionModeIsJudged: one of the client's modes is allowed, or it is said for what
// the client would wait.
func TestEachPermissionModeIsJudged(t *testing.T) {
	t.Parallel()
	for _, mode := range client.Claude.Modes {
		if allowed := slices.Contains(unattended, mode); allowed == (client.Claude.Attended[mode] != "") {
			t.Errorf("%s: allowed is %v, and the client waits for %q", mode, allowed, client.Claude.Attended[mode])
		}
	}
}
