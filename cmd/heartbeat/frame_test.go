package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

func TestMessagesAndExitStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		args   []string
		status int
		stderr []string // parts of it
	}{
		{"unknown command", []string{"sned"}, 2, []string{"heartbeat: cannot parse the command line: unexpected argument sned, did you mean \"send\"?\n", "hint: heartbeat --help\n"}},
		{"a command's beginning", []string{"sta"}, 2, []string{"unexpected argument sta, did you mean \"status\"?\n"}},
		{"a command like others", []string{"sen"}, 2, []string{"unexpected argument sen, did you mean \"send\"?\n"}},
		{"a command in capitals", []string{"STATUS"}, 2, []string{"unexpected argument STATUS, did you mean \"status\"?\n"}},
		{"a flag's beginning", []string{"doctor", "--prob"}, 2, []string{"unknown flag --prob, did you mean \"--probe\"?\n"}},
		{"a flag of one letter", []string{"status", "-x"}, 2, []string{"unknown flag -x\nhint: heartbeat status --help\n"}},
		{"JSON as others print it", []string{"status", "--json"}, 2, []string{"unknown flag --json\nhint: -o json prints JSON\n"}},
		{"a flag without its value", []string{"logs", "--since"}, 2, []string{"--since: a value is missing\n"}},
		{"a flag in the place of a value", []string{"events", "-n", "-1"}, 2, []string{"--count: a value is missing before \"-1\"; if that is the value, write --count=\"-1\"\n"}},
		{"a value of a switch", []string{"status", "--watch=x"}, 2, []string{"--watch: true or false, or no value at all, but not \"x\"\n"}},
		{"a list without its value", []string{"status", "--host"}, 2, []string{"--host: a value is missing\n"}},
		{"a value that is no number", []string{"events", "-n", "1.5"}, 2, []string{"--count: \"1.5\" is not a whole number\n"}},
		{"an action that may be left out", []string{"approval", "x"}, 2, []string{"\"ask\" but got \"x\"\n"}},
		{"a topic, near", []string{"help", "trigers"}, 2, []string{"no topic or command \"trigers\"\nhint: heartbeat help trigger"}},
		{"unknown flag", []string{"send", "--foo"}, 2, []string{"unknown flag --foo", "hint: heartbeat send --help\n"}},
		{"missing argument", []string{"attach"}, 2, []string{"cannot parse the command line: <agent> is missing\n", "hint: heartbeat attach --help\n"}},
		{"no agent to send to", []string{"send"}, 2, []string{"cannot parse the command line: no agent is named", "hint: heartbeat send AGENT TEXT\n"}},
		{"unknown output", []string{"version", "-o", "xml"}, 2, []string{"must be one of", "text"}},
		{"unknown log level", []string{"version", "--log-level", "loud"}, 2, []string{"--log-level: \"loud\" is not a level: write debug, info, warn or error"}},
		{"a prompt with a dash", []string{"send", "triage", "- dash"}, 2, []string{`hint: heartbeat send --help; a prompt that begins with a dash stands behind --: heartbeat send AGENT -- "TEXT"`}},
		{"negative heartbeat", []string{"version", "--heartbeat-ms=-1"}, 2, []string{`"-1" is not a number of milliseconds`}},
		{"negative heartbeat, apart", []string{"version", "--heartbeat-ms", "-1"}, 2, []string{"cannot parse the command line"}},
		{"heartbeat is no number", []string{"version", "--heartbeat-ms", "often"}, 2, []string{`"often" is not a number of milliseconds`}},
		{"no file", []string{"validate"}, 78, []string{"heartbeat: cannot find heartbeat.yaml: it is not in ", "hint: heartbeat init"}},
		{"bad file", []string{"validate", "-f", "bad.yaml"}, 78, []string{"heartbeat: cannot use \"bad.yaml\": 2 problems\n", "bad.yaml:1:", "bad.yaml:4:"}},
		{"unknown agent, near", []string{"inbox", "traige"}, 1, []string{`heartbeat: cannot find agent "traige" in "`, "hint: did you mean triage?\n"}},
		{"unknown agent", []string{"inbox", "zzzzzz"}, 1, []string{"hint: the agents are triage\n"}},
		{"action without id", []string{"inbox", "triage", "drop"}, 2, []string{"drop needs an id", "hint: heartbeat inbox AGENT drop ID\n"}},
		{"id without action", []string{"inbox", "triage", "list", "x"}, 2, []string{"list takes no ids"}},
		{"unknown action", []string{"inbox", "triage", "eat", "x"}, 2, []string{"must be one of"}},
		{"an action before a missing agent", []string{"dead-letter", "list", "zzzzzz"}, 1, []string{`cannot find agent "zzzzzz"`}},
		{"nearly an action", []string{"dead-letter", "retri"}, 2, []string{"\"retri\" is not an action of dead-letter\nhint: heartbeat dead-letter retry\n"}},
		{"unknown dead letter", []string{"dead-letter", "triage", "retry", "x"}, 1, []string{"no entry has this id", "hint: heartbeat dead-letter triage list\n"}},
		{"all with list", []string{"dead-letter", "triage", "list", "--all"}, 2, []string{"--all goes with"}},
		{"recover what", []string{"recover"}, 2, []string{"name either an agent or --inbox PATH"}},
		{"recover both", []string{"recover", "triage", "--inbox", "x"}, 2, []string{"name either an agent or --inbox PATH"}},
		{"recover how", []string{"recover", "triage", "--on-orphan", "eat"}, 2, []string{"must be one of"}},
		{"launch nothing", []string{"launch"}, 2, []string{"there is no command"}},
		{"launch for ever and a day", []string{"launch", "--timeout", "long", "--", "true"}, 2, []string{`"long" is not a duration`}},
		{"launch what is not there", []string{"launch", "--", "/no/such"}, 1, []string{"heartbeat: cannot"}},
		{"launch nowhere", []string{"launch", "--cwd", "nowhere", "--", "true"}, 1, []string{"heartbeat: cannot run in \"nowhere\""}},
		{"shell", []string{"completion", "tcsh"}, 2, []string{"must be one of"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", oneAgent)
			w.put("bad.yaml", "version: 2\nagents:\n  triage:\n    dri: x\n    dir: x\n")
			w.put("agents/triage/.heartbeat/inbox.jsonl", "")
			if tt.name == "no file" {
				if err := os.Remove(filepath.Join(w.dir, "heartbeat.yaml")); err != nil {
					t.Fatal(err)
				}
			}
			o := w.run(tt.args...)
			if o.status != tt.status || o.stdout != "" {
				t.Errorf("status %d, want %d; stdout %q, want none\nstderr: %s", o.status, tt.status, o.stdout, o.stderr)
			}
			for _, part := range tt.stderr {
				if !strings.Contains(o.stderr, part) {
					t.Errorf("stderr lacks %q:\n%s", part, o.stderr)
				}
			}
			if tt.name == "unknown output" {
				return
			}
			j := w.run(append([]string{"-o", "json"}, tt.args...)...)
			if r := envelopeOf(t, j); j.status != tt.status || *r.Error.Code == "" {
				t.Errorf("with JSON: status %d, want %d: %s", j.status, tt.status, j.stdout)
			}
			if strings.Contains(j.stderr, "heartbeat: ") {
				t.Errorf("with JSON the error stands on stderr, too: %s", j.stderr)
			}
		})
	}
}

// TestVersionFlag: --version works where people try it.
func TestVersionFlag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.ok("version")
	for _, args := range [][]string{{"--version"}, {"run", "--version"}, {"--log-level", "debug", "--version"}} {
		if got := w.ok(args...); got != want {
			t.Errorf("%q prints %q, want %q", args, got, want)
		}
	}
	if r := envelopeOf(t, w.run("--version", "-o", "json")); !strings.Contains(string(r.Data), `"platform"`) {
		t.Errorf("with JSON: %s", r.Data)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	parser, err := newParser(&cli{}, stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	alone, asked := w.ok(), w.ok("--help")
	if alone != asked || !strings.Contains(alone, "Usage: heartbeat <command>") {
		t.Errorf("heartbeat alone printed:\n%s\nwith --help:\n%s", alone, asked)
	}
	for _, node := range parser.Model.Children {
		if node.Hidden || node.Name == "simulate" {
			continue
		}
		t.Run(node.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", oneAgent)
			help := w.ok(slices.Concat([]string{node.Name}, arguments(node), []string{"--help", "--file", "new.yaml"})...)
			if !strings.Contains(help, "Usage: heartbeat "+node.Name) || !strings.Contains(help, "Example") {
				t.Errorf("the help has no usage or no example:\n%s", help)
			}
			if left := w.names("."); !slices.Equal(left, []string{"heartbeat.yaml"}) {
				t.Errorf("--help acted: %v", left)
			}
			if !strings.Contains(asked, "\n  "+node.Name+" ") {
				t.Errorf("the list of commands lacks %s", node.Name)
			}
		})
	}
}

// arguments are words for a command's required arguments.
func arguments(node *kong.Node) []string {
	var args []string
	for _, p := range node.Positional {
		if p.Required {
			args = append(args, "triage")
		}
	}
	if node.Name == "completion" {
		return []string{"bash"}
	}
	return args
}

func TestFileFromEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("other.yaml", oneAgent+"    command: [heartbeat, simulate]\n")
	w.env = append(w.env, "HEARTBEAT_FILE=other.yaml")
	if out := w.ok("validate"); !strings.Contains(out, "other.yaml: ok, 1 agent") {
		t.Errorf("stdout: %s", out)
	}
	w.put("heartbeat.yaml", strings.ReplaceAll(oneAgent, "triage", "second")+"    command: [heartbeat, simulate]\n")
	if out := w.ok("validate", "-f", "heartbeat.yaml"); !strings.Contains(out, "second") {
		t.Errorf("the flag does not override the environment: %s", out)
	}
}

// What a program that waits for a long command sees.
func TestHeartbeatLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := w.command("launch", "-o", "json", "--heartbeat-ms", "50", "--", "sleep", "3")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	var firstAt time.Time
	for s := bufio.NewScanner(out); s.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("a line that does not parse: %q", s.Text())
		}
		if len(lines) == 0 {
			firstAt = time.Now()
		}
		lines = append(lines, line)
	}
	endedAt := time.Now()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(lines) < 4 {
		t.Fatalf("%d lines in three seconds: %v", len(lines), lines)
	}
	last, step := 0.0, any(nil) // none before its command runs
	for _, l := range lines[:len(lines)-1] {
		elapsed, _ := l["elapsed_ms"].(float64)
		if step == nil {
			step = l["step"]
		}
		if l["status"] != "running" || l["heartbeat"] != true || elapsed < last || l["step"] != step {
			t.Errorf("a line that says it is still running: %v (after %v ms)", l, last)
		}
		last = elapsed
	}
	if step != "running sleep" {
		t.Errorf("it says that it is at %v", step)
	}
	if end := lines[len(lines)-1]; end["ok"] != true || end["heartbeat"] != nil {
		t.Errorf("the last line: %v", end)
	}
	if endedAt.Sub(firstAt) < 300*time.Millisecond {
		t.Errorf("the first line came only %v before the end: stdout is buffered", endedAt.Sub(firstAt))
	}
}

func TestNoHeartbeatLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, args := range map[string][]string{
		"off":                       {"launch", "-o", "json", "--heartbeat-ms", "0", "--", "sleep", "0.2"},
		"ended before the interval": {"launch", "-o", "json", "--", "sleep", "0.2"},
		"failure":                   {"launch", "-o", "json", "--heartbeat-ms", "10000", "--", "false"},
	} {
		o := w.run(args...)
		envelopeOf(t, o)
		if strings.Count(o.stdout, "\n") != 1 {
			t.Errorf("%s: more than the envelope: %s", name, o.stdout)
		}
	}
	if o := w.run("launch", "--heartbeat-ms", "10", "--", "sleep", "0.2"); o.stdout != "" || o.stderr != "" {
		t.Errorf("people get lines for programs: %q %q", o.stdout, o.stderr)
	}
}

func TestClosedStdoutIsNoCrash(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}} {
		w := newWorld(t)
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd := w.command(args...)
		cmd.Stdout = out
		if err := cmd.Run(); err != nil {
			t.Errorf("heartbeat %q | true: %v", args, err)
		}
		out.Close()
	}
}

func TestFullDiskIsAnError(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	defer full.Close()
	w := newWorld(t)
	cmd := w.command("version")
	cmd.Stdout = full
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("a result that was not printed: %v", err)
	}
}

func TestColoursOnTerminalsOnly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		env     []string
		colours bool
	}{
		{"terminal", []string{"TERM=xterm-256color"}, true},
		{"NO_COLOR", []string{"TERM=xterm-256color", "NO_COLOR=1"}, false},
		{"dumb terminal", []string{"TERM=dumb"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n")
			self := testbed.Program(t, "heartbeat")
			var screen strings.Builder
			child, err := ptyrun.Start(t.Context(), ptyrun.Config{
				Argv: []string{self, "validate"}, Dir: w.dir, Env: append(w.env, tt.env...), Output: &screen,
			})
			if err != nil {
				t.Fatal(err)
			}
			<-child.Done()
			if exit := child.End(t.Context()); exit.Code != 0 {
				t.Fatalf("status %d: %s", exit.Code, screen.String())
			}
			if got := strings.Contains(screen.String(), "\x1b["); got != tt.colours {
				t.Errorf("colours: %v, want %v: %q", got, tt.colours, screen.String())
			}
		})
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n")
	if out := w.ok("validate"); strings.Contains(out, "\x1b") {
		t.Errorf("colours in a pipe: %q", out)
	}
}

// The hook is reached before anything else is set up, and does nothing where
// no session of ours lives.
func TestHookOutsideOfSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.feed(`{"hook_event_name":"Stop","session_id":"x"}`, "hook")
	if o != (outcome{}) {
		t.Errorf("got %+v, want silence and status 0", o)
	}
	if left := w.names("."); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
}
