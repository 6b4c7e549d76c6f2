package main

import (
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
)

// TestSinceIsOfAllThatShowsThePast: events and history refused it, and with it replies
// showed the newest twenty.
func TestSinceIsOfAllThatShowsThePast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	w.ok("send", "triage", "hello")
	if o := w.run("run", "--once"); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	for _, command := range []string{"events", "history", "replies", "logs"} {
		if now, ever := w.ok(command, "--since", "1h"), w.ok(command); now != ever || !strings.Contains(now, "\n") {
			t.Errorf("%s:\n%s\nand with --since 1h:\n%s", command, ever, now)
		}
		if out := w.ok(command, "--since", "0s"); strings.Contains(out, "triage ") || strings.Contains(out, "hello") {
			t.Errorf("%s --since 0s:\n%s", command, out)
		}
		if o := w.run(command, "--since", "1h", "-n", "-1"); o.status != exitUsage {
			t.Errorf("%s -n -1: %+v", command, o)
		}
	}
	early, n := since{time.Now()}, 3
	for want, got := range map[int]int{3: early.most(&n, 20), 20: since{}.most(nil, 20)} {
		if got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	if early.most(nil, 20) < 1_000_000 {
		t.Error("with a time there is a limit")
	}
	if (eventsCmd{Since: early}).wants(journal.Event{At: early.Add(-time.Second)}) {
		t.Error("what was before is wanted")
	}
}
