package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

// manyAgents is a fleet whose apply takes a moment.
func manyAgents(n int) string {
	var all strings.Builder
	all.WriteString("version: 1\nname: fleet\nagents:\n")
	for i := range n {
		fmt.Fprintf(&all, "  agent-%03d: {dir: agents/%03[1]d}\n", i)
	}
	return all.String()
}

// TestLongWorkSaysHowFarItIs: a bar on a terminal, a line now and then elsewhere, and
// nothing where nobody wants it or JSON is asked for.
func TestLongWorkSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", manyAgents(60))
	lines := func(args ...string) int {
		t.Helper()
		o := w.run(append(args, "apply", "--dry-run")...)
		if o.status != 0 {
			t.Fatalf("%+v", o)
		}
		return strings.Count(o.stderr, " of 60)\n")
	}
	if n := lines("--heartbeat-interval", "1ns"); n != 60 {
		t.Errorf("%d lines without a terminal", n)
	}
	for _, args := range [][]string{{"--heartbeat-interval", "0"}, {"--heartbeat-interval", "1ns", "-o", "json"}, {"--heartbeat-interval", "10m"}} {
		if n := lines(args...); n != 0 {
			t.Errorf("%q: %d lines", args, n)
		}
	}
	screen := &testbed.Output{}
	child, err := ptyrun.Start(t.Context(), ptyrun.Config{
		Argv: []string{testbed.Program(t, "heartbeat"), "apply"}, Dir: w.dir, Env: append(w.env, "TERM=xterm", "NO_COLOR=1"), Output: screen,
		Rows: 30, Cols: 40, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	child.End(t.Context())
	bar, rest, _ := strings.Cut(screen.String(), "] wiring agent-")
	if !strings.Contains(bar, "[") || !strings.Contains(rest, "\r"+clearLine) || !strings.Contains(rest, "created") {
		t.Errorf("on a terminal: %.2000q", screen.String())
	}
	for part := range strings.SplitSeq(screen.String(), "\r"+clearLine) {
		if line, _, _ := strings.Cut(part, "\r"); strings.HasPrefix(line, "[") && width(line) > 39 {
			t.Errorf("%d columns: %q", width(line), line)
		}
	}
}

// TestARunWithOnceSaysHowFarItIs: a bar on a terminal, which its log scrolls above
// and its end removes.
func TestARunWithOnceSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", `{"rules": [{"match": "", "steps": [{"hang": true}]}]}`)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n",
		"agents/triage\n    command: [heartbeat, simulate, --home, "+w.dir+"/home, --script, "+w.dir+"/script.json]\n", 1))
	w.put("agents/triage/.heartbeat/inbox.jsonl", "")
	if o := w.run("send", "triage", "one"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	screen := &testbed.Output{}
	child, err := ptyrun.Start(t.Context(), ptyrun.Config{
		Argv: []string{testbed.Program(t, "heartbeat"), "run", "--once"}, Dir: w.dir, Env: append(w.env, "TERM=xterm", "NO_COLOR=1"), Output: screen,
		Rows: 30, Cols: 80, Grace: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer child.End(t.Context())
	const bar = "\r" + clearLine + "[....................] 0 of 1 prompt; 1 running"
	if !testbed.Await(patience, func() bool { return strings.Contains(screen.String(), bar) }) {
		t.Fatalf("%.4000q", screen.String())
	}
	if o := w.run("stop", "--now"); o.status != 0 {
		t.Errorf("%+v", o)
	}
	<-child.Done()
	child.End(t.Context()) // all that it has written has come then
	_, after, _ := strings.Cut(screen.String(), bar)
	last := strings.LastIndex(after, "\r"+clearLine)
	if last < 0 || !strings.HasPrefix(after[last+len("\r"+clearLine):], "AGENT") || !strings.Contains(after[:last], "heartbeat stopped") {
		t.Errorf("after the first bar: %q", after)
	}
}

// TestTheBottomLine: what is written scrolls above it, and it is written once.
func TestTheBottomLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := &bottomLine{w: &out}
	write := func(text string) {
		if n, err := b.Write([]byte(text)); n != len(text) || err != nil {
			t.Error(n, err)
		}
	}
	write("one\n")
	b.show("")
	b.show("half")
	b.show("half")
	write("two\n")
	b.show("")
	write("three\n")
	const clear = "\r" + clearLine
	if want := "one\n" + clear + "half" + clear + "two\nhalf" + clear + "three\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
