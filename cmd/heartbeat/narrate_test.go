package main

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/status"
	"heartbeat/ptyrun"
)

// onTerminal runs the fleet on a terminal of 100 columns.
func (w *world) onTerminal(args ...string) (screen *testbed.Output, ended <-chan struct{}) {
	w.t.Helper()
	screen = &testbed.Output{}
	child, err := ptyrun.Start(w.t.Context(), ptyrun.Config{
		Argv: append([]string{testbed.Program(w.t, "heartbeat"), "run"}, args...), Dir: w.dir, Env: append(w.env, "TERM=xterm", "NO_COLOR=1"), Output: screen,
		Rows: 30, Cols: 100, Grace: time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		<-child.Done()
		child.End(w.t.Context()) // all that it has written has come then
		close(done)
	}()
	w.t.Cleanup(func() { child.End(w.t.Context()) })
	return screen, done
}

// TestARunOnATerminalTellsPeople what is handed over and done, with its reply, time and
// cost, and problems as they begin and end; a person saw log lines there.
func TestARunOnATerminalTellsPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", `{"rules": [{"match": "mail", "steps": [{"delay": "1s"}, {"reply": "One wants an answer.\nIt is long."}]}]}`)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n",
		"agents/triage\n    command: [heartbeat, simulate, --home, "+w.dir+"/home, --script, "+w.dir+"/script.json]\n", 1))
	w.put("agents/triage/.heartbeat/inbox.jsonl", "")
	screen, ended := w.onTerminal()
	shows := func(pattern string) {
		t.Helper()
		line := regexp.MustCompile(`(?m)^(?:.*\r\x1b\[K)?` + pattern)
		if !testbed.Await(patience, func() bool { return line.MatchString(screen.String()) }) {
			t.Fatalf("no %s in\n%q", pattern, screen.String())
		}
	}
	shows(`\d\d:\d\d:\d\d  heartbeat runs 1 agent of .*heartbeat\.yaml; Ctrl-C ends it`)
	if o := w.run("send", "triage", "Sort the mail.\nAll of it."); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	shows(`\d\d:\d\d:\d\d  triage  starts  Sort the mail\. …  \(send\)`)
	shows(`\d\d:\d\d:\d\d  triage  done    One wants an answer\. …  \(\d+s, \$0\.\d+\)`)
	if o := w.run("pause", "triage"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	shows(`! triage: paused by a person`)
	if o := w.run("resume", "triage"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	shows(`\d\d:\d\d:\d\d  over  triage: paused, after`)
	if o := w.run("stop"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	<-ended
	text := strings.ReplaceAll(screen.String(), "\r\n", "\n")
	for _, want := range []string{"heartbeat stopped after ", " (asked to stop): 1 prompt done; cost $0.", "\nNext:\n    heartbeat replies  ", "\n    heartbeat run      "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "agent=") {
		t.Errorf("a log line among what people read:\n%s", text)
	}
}

// TestARunOnATerminalLogsWhenAsked: who names a level or a format wants the log.
func TestARunOnATerminalLogsWhenAsked(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--log-level=info", "--log-format=text"} {
		w := newWorld(t)
		w.put("heartbeat.yaml", oneAgent)
		w.put("agents/triage/README", "")
		screen, ended := w.onTerminal("--once", flag)
		<-ended
		if text := screen.String(); !strings.Contains(text, " heartbeat runs fleet=") || !strings.Contains(text, " heartbeat stopped why=") || strings.Contains(text, "Next:") {
			t.Errorf("%s: %s", flag, text)
		}
	}
}

func TestALogInSentences(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newLog(&out, palette{}, slog.LevelInfo, peopleFormat).With("agent", "a")
	log.Info("agent running", "why", "work is queued")
	log.Info("a probe", "took", time.Second)
	log.Info("the client passed the probe", "client", "Claude Code 2.1.332 (/bin/claude)", "took", time.Second)
	log.Info("the client is new here: trying it offline", "client", "/opt/bin/claude")
	log.Info("an address is served", "address", "127.0.0.1:1", "serves", []string{"page", "webhooks"})
	log.Warn("cannot send the ping", "err", "no route\x1b", "hint", "look", "screen", "one\ntwo")
	stamp := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d`)
	want := "T   a: a probe (took 1s)\nT   a: Claude Code 2.1.332 passed the probe (took 1s)\nT   a: claude is new here: trying it offline\nT   a: 127.0.0.1:1 serves page webhooks\nT ! a: cannot send the ping: no route\uFFFD\n    hint  look\n  screen:\n    one\n    two\n"
	if got := stamp.ReplaceAllString(out.String(), "T"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestAProblemIsToldOnce: an approval was told again every two seconds, with "over" after each,
// because its text says how long it has waited; and dead letters were over when there was one more.
func TestAProblemIsToldOnce(t *testing.T) {
	t.Parallel()
	start := time.Now()
	approval := status.Trouble{Agent: "a", What: status.NeedsApproval, Since: start}
	another := status.Trouble{Agent: "a", What: status.NeedsApproval, Since: start.Add(time.Minute)}
	one, two := status.Trouble{Agent: "a", What: status.HasDeadLetters, Text: "1 dead letter, 1s old"}, status.Trouble{Agent: "a", What: status.HasDeadLetters, Text: "2 dead letters, the oldest 3s old"}
	still := one
	approval.Text, still.Text = "waits for approval for 1s: Is this done?", "1 dead letter, 3s old"
	again := approval
	again.Text = "waits for approval for 3s: Is this done?"
	door := status.Trouble{What: status.NotListening, Part: ":1", Since: start.Add(time.Hour)}
	var k problems
	for i, look := range []struct {
		all         []status.Trouble
		begun, over int
	}{
		{[]status.Trouble{approval, one}, 2, 0},
		{[]status.Trouble{again, still}, 0, 0},
		{[]status.Trouble{another, two}, 2, 1},
		{[]status.Trouble{another}, 0, 1},
		{[]status.Trouble{door}, 0, 1}, // which is just being opened
		{nil, 0, 0},
	} {
		if begun, over := k.compare(look.all, start.Add(time.Hour)); len(begun) != look.begun || len(over) != look.over {
			t.Errorf("look %d: %d have begun, %d are over, want %d and %d", i, len(begun), len(over), look.begun, look.over)
		}
	}
	if begun, _ := k.compare([]status.Trouble{door}, start.Add(2*time.Hour)); len(begun) != 1 {
		t.Error("an address that stays closed is not told")
	}
}

// TestARunOnATerminalTellsFailures in a line each: how a session has ended, what a check said, what
// was given up, which addresses are closed. The log's words for people who read the code stood there.
func TestARunOnATerminalTellsFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w.put("client", "#!/bin/sh\necho 'error: GLIBC_2.99 not found'\nexit 1\n")
	if err := os.Chmod(filepath.Join(w.dir, "client"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.put("script.json", `{"rules": [{"match": "bad", "steps": [{"crash": true}]}]}`)
	w.put("heartbeat.yaml", "version: 1\nlisten: [{address: \""+taken.Addr().String()+"\", serve: [page]}]\ndefaults: {command: [heartbeat, simulate, --script, "+w.dir+"/script.json], max-attempts: 1}\n"+
		"agents:\n  crashes: {dir: agents/crashes}\n  unproven: {dir: agents/unproven, until: {check: [sh, -c, \"echo 2 tests fail; exit 1\"], max-iterations: 1}}\n  broken: {dir: agents/broken, command: ["+w.dir+"/client]}\n")
	w.ok("apply")
	for agent, text := range map[string]string{"crashes": "A bad one", "unproven": "Mend it", "broken": "Hello"} {
		w.ok("send", agent, text)
	}
	screen, _ := w.onTerminal()
	for _, want := range []string{
		`crashes   failed  crashed \(ended by SIGKILL\)`, `crashes   gave up A bad one  \(it is a dead letter\)`,
		`unproven  failed  its check: exit status 1: 2 tests fail`, `unproven  gave up Mend it  \(it is a dead letter\)`,
		`broken    failed  exited with code 1 \(error: GLIBC_2\.99 not found\)`,
		`! this fleet: the page has been down for \d+s`,
	} {
		line := regexp.MustCompile(want)
		if !testbed.Await(patience, func() bool { return line.MatchString(screen.String()) }) {
			t.Fatalf("no %s in\n%s", want, screen.String())
		}
	}
	if text := screen.String(); strings.Contains(text, "entry") || strings.Contains(text, "outcome") {
		t.Errorf("words of the log:\n%s", text)
	}
}

// TestWhatTheNarratorTellsIsLogged somewhere: another wording would be told twice.
func TestWhatTheNarratorTellsIsLogged(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	for _, root := range []string{".", "../../orchestrator"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "log_people.go" {
				return err
			}
			data, err := os.ReadFile(path)
			all.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, begin := range narrated {
		if !strings.Contains(all.String(), `"`+begin) {
			t.Errorf("nothing logs %q", begin)
		}
	}
}
