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
	screen := &said{}
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
