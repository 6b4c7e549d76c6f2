package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/flock"
	"heartbeat/internal/testbed"
)

func TestInitThenValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("bin/claude", "")
	if err := os.Chmod(filepath.Join(w.dir, "bin/claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+w.dir+"/bin")
	if out := w.ok("init"); !strings.Contains(out, "wrote "+w.dir+"/heartbeat.yaml") {
		t.Errorf("stdout: %s", out)
	}
	if out := w.ok("validate"); !strings.Contains(out, ": ok, ") {
		t.Errorf("the starter file is not valid: %s", out)
	}
	w.ok("init", "--full", "-f", "full.yaml")
	if out := w.ok("validate", "-f", "full.yaml"); !strings.Contains(out, ": ok, ") || !strings.Contains(w.get("full.yaml"), "max-continuations:") {
		t.Errorf("the file with all keys is not valid: %s", out)
	}
	w.put("heartbeat.yaml", "mine")
	o := w.run("init")
	if o.status != 1 || !strings.Contains(o.stderr, `cannot write "heartbeat.yaml": it is there already`) || w.get("heartbeat.yaml") != "mine" {
		t.Errorf("a second init: %+v, file %q", o, w.get("heartbeat.yaml"))
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nagents:\n  a:\n    dir: x\n    timeout: 5\n  b:\n    dri: y\n")
	o := w.run("validate", "-o", "json")
	r := envelopeOf(t, o)
	if o.status != 78 || *r.Error.Code != "bad-configuration" {
		t.Errorf("status %d, code %s", o.status, *r.Error.Code)
	}
	var data struct {
		Problems []struct {
			File, Key, Message, Hint string
			Line, Column             int
		}
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, p := range data.Problems {
		lines = append(lines, p.Line)
		if p.File == "" || p.Key == "" || p.Message == "" || p.Column == 0 {
			t.Errorf("a problem lacks something: %+v", p)
		}
	}
	if !slices.Contains(lines, 5) || !slices.Contains(lines, 7) {
		t.Errorf("problems stand at lines %v, want 5 and 7 among them", lines)
	}
}

func TestApplyTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	if out := w.ok("apply", "--dry-run"); !strings.Contains(out, "2 created, 0 changed, 0 unchanged (nothing was done)") {
		t.Errorf("dry run: %s", out)
	}
	if left := w.names("agents"); len(left) != 0 {
		t.Errorf("the dry run made %v", left)
	}
	if out := w.ok("apply"); !strings.Contains(out, "2 created, 0 changed, 0 unchanged\n") {
		t.Errorf("first: %s", out)
	}
	first := w.get("agents/triage/.claude/settings.json")
	if out := w.ok("apply"); !strings.Contains(out, "0 created, 0 changed, 2 unchanged\n") {
		t.Errorf("second: %s", out)
	}
	if second := w.get("agents/triage/.claude/settings.json"); second != first {
		t.Errorf("the second apply changed the settings:\n%s\n%s", first, second)
	}
	if got := w.get("agents/triage/.heartbeat/.gitignore"); got != "*\n" {
		t.Errorf(".gitignore: %q", got)
	}
}

// The generated hook is a command that runs, also from a test binary in a
// temporary build folder, and says nothing where no session lives.
func TestGeneratedHookRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	var s struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	if err := json.Unmarshal([]byte(w.get("agents/triage/.claude/settings.json")), &s); err != nil {
		t.Fatal(err)
	}
	command := s.Hooks["Stop"][0].Hooks[0].Command
	if strings.Contains(command, "go-build") {
		t.Errorf("the hook names a temporary build folder: %s", command)
	}
	sh := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
	sh.Dir, sh.Env, sh.Stdin = w.dir, w.env, strings.NewReader(`{"hook_event_name":"Stop"}`)
	if out, err := sh.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("%s: %v: %s", command, err, out)
	}
}

func TestApplyGoesOnAfterABrokenAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"  other:\n    dir: agents/other\n")
	w.put("agents/triage/.claude/settings.json", "{ // no\n}")
	o := w.run("apply")
	if o.status != 1 || !strings.Contains(o.stderr, `heartbeat: cannot wire agent "triage"`) {
		t.Errorf("%+v", o)
	}
	if !strings.Contains(o.stdout, "other") || len(w.names("agents/other/.claude")) != 1 {
		t.Errorf("the other agent was not wired: %s", o.stdout)
	}
	if o := w.run("apply", "other"); o.status != 0 {
		t.Errorf("the other agent alone: %+v", o)
	}
}

// A wrong dir does not become an empty workspace that nobody looks into.
func TestSendToADirectoryThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	o := w.run("send", "triage", "x")
	if o.status != 1 || !strings.Contains(o.stderr, "hint: heartbeat apply triage makes it; or correct dir") {
		t.Errorf("send: %+v", o)
	}
	if left := w.names("agents"); len(left) != 0 {
		t.Errorf("it made %v", left)
	}
	w.put("agents/triage/README", "")
	w.ok("send", "triage", "a directory of the person's own is enough")
}

func TestSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	w.ok("send", "triage", "from an argument")
	w.ok("send", "triage", "--", "- begins with a dash")
	for _, args := range [][]string{{"send", "triage"}, {"send", "triage", "-"}} {
		if o := w.feed("from a pipe,\nin two lines\n", args...); o.status != 0 || o.stderr != "" {
			t.Errorf("heartbeat %q: %+v", args, o)
		}
	}
	var prompts []string
	for line := range strings.Lines(w.get("agents/triage/.heartbeat/inbox.jsonl")) {
		var e struct{ ID, Source, Prompt string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.ID == "" || e.Source != "send" {
			t.Fatalf("a line of the inbox: %q, %v", line, err)
		}
		prompts = append(prompts, e.Prompt)
	}
	want := []string{"from an argument", "- begins with a dash", "from a pipe,\nin two lines", "from a pipe,\nin two lines"}
	if !slices.Equal(prompts, want) {
		t.Errorf("prompts: %q, want %q", prompts, want)
	}
}

func TestSendOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	for i, want := range []bool{false, true} {
		var sent struct {
			ID        string
			Duplicate bool
		}
		w.into(&sent, "send", "triage", "--id", "ticket-1", "text")
		if sent.ID != "ticket-1" || sent.Duplicate != want {
			t.Errorf("send %d: %+v", i, sent)
		}
	}
	if n := strings.Count(w.get("agents/triage/.heartbeat/inbox.jsonl"), "\n"); n != 1 {
		t.Errorf("%d lines in the inbox, want 1", n)
	}
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stdin string
		args        []string
		status      int
		stderr      string
	}{
		{"blank", "", []string{"send", "triage", " \n "}, 2, "the prompt is blank"},
		{"a timeout that nothing waits for", "", []string{"send", "triage", "--timeout", "5s", "x"}, 2, "without --wait"},
		{"an empty --until-check", "", []string{"send", "triage", "--until-check", "", "x"}, 2, "--until-check"},
		{"an empty --until-promise", "", []string{"send", "triage", "--until-promise", "", "x"}, 2, "--until-promise"},
		{"an empty --until-approve", "", []string{"send", "triage", "--until-approve", "", "x"}, 2, "--until-approve"},
		{"an empty --at", "", []string{"send", "triage", "--at", "", "x"}, 2, "--at"},
		{"a bare --in", "", []string{"send", "triage", "--in", "10", "x"}, 2, `--in: "10" has no unit: write 10s or 10m`},
		{"a bare --timeout", "", []string{"send", "triage", "--wait", "--timeout", "60", "x"}, 2, `"60" has no unit: write 60s or 60m`},
		{"a bare --max-time", "", []string{"send", "triage", "--until-check", "true", "--max-time", "60", "x"}, 2, `"60" has no unit`},
		{"an empty --in", "", []string{"send", "triage", "--in", "", "x"}, 2, "--in"},
		{"an empty --cancel", "", []string{"send", "triage", "--cancel", "", "x"}, 2, "--cancel"},
		{"an empty --reply-to", "", []string{"send", "triage", "--reply-to", "", "x"}, 2, "--reply-to"},
		{"an empty id", "", []string{"send", "triage", "--id", "", "x"}, 2, "--id is empty"},
		{"blank pipe", "\n\n", []string{"send", "triage"}, 2, "the prompt is blank"},
		{"nothing on stdin", "", []string{"send", "triage", "-"}, 2, "the prompt is blank"},
		{"unknown agent", "", []string{"send", "nobody", "x"}, 1, `cannot find agent "nobody"`},
		{"too large", strings.Repeat("x", 2001), []string{"send", "triage"}, 1, "hint: put the text into a file"},
		{"no UTF-8", "\xff\xfe\xfd", []string{"send", "triage"}, 1, "not valid UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", oneAgent+"    max-entry: 2000\n")
			o := w.feed(tt.stdin, tt.args...)
			if o.status != tt.status || o.stdout != "" || !strings.Contains(o.stderr, tt.stderr) {
				t.Errorf("%+v", o)
			}
			if left := w.names("agents/triage/.heartbeat"); slices.Contains(left, "inbox.jsonl") {
				t.Error("something was queued")
			}
		})
	}
}

func TestInboxAndDeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	for _, command := range []string{"inbox", "dead-letter"} {
		if out := w.ok(command, "triage"); !strings.Contains(out, "triage") {
			t.Errorf("%s of an agent that was never used: %s", command, out)
		}
	}
	w.ok("send", "triage", "--id", "one", "first\x1b[31m prompt\nwith two lines")
	w.ok("send", "triage", "--id", "two", "second")
	if out := w.ok("inbox", "triage"); !strings.Contains(out, "one  queued  send    first\uFFFD[31m prompt with two lines\n") {
		t.Errorf("list:\n%s", out)
	}
	if out := w.ok("inbox", "triage", "--limit", "1"); !strings.Contains(out, "and more") || strings.Contains(out, "second") {
		t.Errorf("list --limit 1:\n%s", out)
	}
	if out := w.ok("inbox", "triage", "show", "two"); !strings.Contains(out, "id:       two\n") || !strings.HasSuffix(out, "\n\n    second\n") {
		t.Errorf("show:\n%s", out)
	}
	if out := w.ok("inbox", "triage", "drop", "one"); out != "triage: 1 entry dropped\n" {
		t.Errorf("drop: %s", out)
	}
	if out := w.ok("dead-letter", "list", "triage"); !strings.Contains(out, "one  dropped  0") {
		t.Errorf("dead letters:\n%s", out)
	}
	if out := w.ok("dead-letter", "triage", "show", "one"); !strings.Contains(out, "reason:   dropped") || !strings.HasSuffix(out, "with two lines\n\n    heartbeat dead-letter retry one    # queues it again\n    heartbeat dead-letter purge one    # deletes it\n") {
		t.Errorf("show:\n%s", out)
	}
	if out := w.ok("dead-letter", "triage", "retry", "one"); out != "triage: 1 entry queued again\n" {
		t.Errorf("retry: %s", out)
	}
	var list queueList
	w.into(&list, "inbox", "triage")
	if len(list.Entries) != 2 || list.Entries[0].ID != "two" || list.Entries[1].Prompt != "first\x1b[31m prompt\nwith two lines" {
		t.Errorf("in the end: %+v", list)
	}
	w.ok("inbox", "triage", "drop", "one", "two")
	if out := w.ok("dead-letter", "triage", "purge", "--all"); out != "triage: 2 entries deleted\n" {
		t.Errorf("purge: %s", out)
	}
}

func TestRecoverCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	w.ok("send", "triage", "x")
	if out := w.ok("recover", "triage"); out != "nothing to recover\n" {
		t.Errorf("stdout: %s", out)
	}
	unlock, err := flock.TryLock(filepath.Join(w.dir, "agents/triage"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	o := w.run("recover", "--inbox", "agents/triage/.heartbeat/inbox.jsonl")
	if o.status != 1 || !strings.Contains(o.stderr, "heartbeat runs there") || !strings.Contains(o.stderr, "hint: stop `heartbeat run` first, which may be another fleet's") {
		t.Errorf("while a scheduler runs: %+v", o)
	}
}

func TestLaunchStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("done", "")
	tests := []struct {
		name   string
		args   []string
		status int
		stdout string
	}{
		{"its own", []string{"--", "sh", "-c", "echo hi; exit 7"}, 7, "hi\r\n"},
		{"flags are the command's", []string{"sh", "-c", "echo $0", "-o"}, 0, "-o\r\n"},
		{"at most 123", []string{"--", "sh", "-c", "exit 200"}, 123, ""},
		{"timeout in seconds", []string{"--timeout", "1", "--", "sleep", "30"}, 124, ""},
		{"stalled", []string{"--idle-timeout", "300ms", "--max-idle-retries", "0", "--", "sleep", "30"}, 125, ""},
		{"stale exit signal", []string{"--exit-signal", "done", "--", "sh", "-c", "test ! -e done"}, 0, ""},
		{"exit signal", []string{"--exit-signal", "now", "--", "sh", "-c", "touch now; sleep 30"}, 0, ""},
		{"size and directory", []string{"--cwd", "home", "--", "sh", "-c", "stty size; basename $PWD"}, 0, "50 200\r\nhome\r\n"},
	}
	w.put("home/x", "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := w.run(append([]string{"launch"}, tt.args...)...)
			if o.status != tt.status || o.stdout != tt.stdout {
				t.Errorf("status %d, want %d; stdout %q, want %q; stderr %s", o.status, tt.status, o.stdout, tt.stdout, o.stderr)
			}
			if said := tt.status == 124 || tt.status == 125; said != (o.stderr != "") {
				t.Errorf("stderr: %q", o.stderr)
			}
		})
	}
	o := w.run("launch", "-o", "json", "--", "sh", "-c", "echo hi; exit 7")
	if r := envelopeOf(t, o); *r.Error.Code != "child-exited" || string(r.Data) != `{"command":["sh","-c","echo hi; exit 7"],"exit_code":7}` {
		t.Errorf("with JSON: %s", o.stdout)
	}
	if o.stderr != "hi\r\n" {
		t.Errorf("with JSON the output is not on stderr: %q", o.stderr)
	}
}

func TestSimulateTakesAllArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if out := w.ok("simulate", "--version"); out == "" {
		t.Error("simulate --version printed nothing")
	}
	if out := w.ok("simulate", "--help"); strings.Contains(out, "Flags of every command") {
		t.Errorf("--help is not the stand-in's own:\n%s", out)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if out := w.ok("version"); !strings.HasPrefix(out, "heartbeat ") || !strings.Contains(out, " go1.") {
		t.Errorf("stdout: %s", out)
	}
	var v map[string]any
	w.into(&v, "version")
	if v["go"] == "" || v["version"] == "" || v["platform"] == "" {
		t.Errorf("data: %v", v)
	}
}

func TestCompletionScriptsParse(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := w.ok("completion", shell)
			if !strings.Contains(script, "__complete") {
				t.Fatalf("script: %s", script)
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(shell + " is not installed")
			}
			cmd := exec.CommandContext(t.Context(), path, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s -n: %v: %s", shell, err, out)
			}
		})
	}
}

// What fish offers for a half-typed line, through the script.
func TestCompletionInFish(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("fish"); err != nil {
		t.Skip("fish is not installed")
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	w.ok("send", "triage", "--id", "one", "hello")
	w.put("home/.keep", "")
	self := testbed.Program(t, "heartbeat")
	for line, want := range map[string]string{
		"inbox drop o":    "one\ttriage: queued\n",
		"trigger triage ": "cron-1\n",
		"-f heartb":       "heartbeat.yaml\n",
	} {
		cmd := exec.CommandContext(t.Context(), "fish", "-c", "heartbeat completion fish | source; complete -C $argv[1]", "heartbeat "+line)
		cmd.Dir, cmd.Env = w.dir, append(w.env, "PATH="+filepath.Dir(self)+":"+os.Getenv("PATH"))
		if out, err := cmd.Output(); err != nil || string(out) != want {
			t.Errorf("heartbeat %s TAB: %q, want %q (%v)", line, out, want, err)
		}
	}
}

// What bash offers for a half-typed line, through the script.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"  tester:\n    dir: agents/tester\n  evil:\n    dir: agents/evil\n")
	w.ok("apply")
	w.ok("send", "triage", "--id", "one", "hello")
	w.ok("send", "tester", "--id", "two", "hello")
	w.ok("inbox", "drop", "two")
	w.ok("send", "triage", "--in", "1h", "--id", "later-1", "hello")
	w.put("agents/evil/.heartbeat/.dead-letter.jsonl", `{"entry_id":"e","id":"$(touch ran)","raw_line":"x","reason":"poison"}
{"entry_id":"--all","raw_line":"x","reason":"poison"}
{"entry_id":"e-3","raw_line":"x","reason":"poison"}
`)
	self := testbed.Program(t, "heartbeat")
	for line, want := range map[string]string{
		"inbox drop o":         "one",
		"inbox triage show o":  "one",
		"dead-letter retry tw": "two",
		"dead-letter purge tw": "two",
		"send t":               "triage tester",
		"send tr":              "triage",
		"launch --exit-w":      "--exit-with",
		"inbox triage d":       "drop",
		"-o j":                 "json",
		"-o json sta":          "status",
		"help sta":             "stalls status",
		"status -o json --wa":  "--watch",
		"--output = j":         "json", // as bash splits --output=j
		"--output =":           "text json",
		"--output = json sta":  "status",

		"send triage --cancel l":   "later-1",
		"dead-letter evil purge ⇥": "e e-3", // what agents write is neither run nor offered where a shell would run it
	} {
		words := strings.Split(strings.ReplaceAll(line, "⇥", ""), " ")
		ask := `eval "$("$0" completion bash)"; COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _heartbeat; echo "${COMPREPLY[*]}"`
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", ask, self}, words...)...)
		cmd.Dir, cmd.Env = w.dir, w.env
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil || strings.TrimSpace(out.String()) != want {
			t.Errorf("heartbeat %s TAB: %q, want %q (%v, %s)", line, out.String(), want, err, stderr.String())
		}
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "ran")); err == nil {
		t.Error("TAB has run a command that an agent wrote")
	}
}
