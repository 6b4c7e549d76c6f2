package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypoInTheFileOfARunningFleet (found by a user: one typo disabled pause,
// send and status of a scheduler that ran well on the old file): what only has
// to know which agents there are goes on, and says so; what puts the file into
// effect stays strict.
func TestTypoInTheFileOfARunningFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("agents.yaml", "agents: {builder: {dir: agents/builder, command: [heartbeat, simulate], trigger: {cron: '@yearly', prompt-file: p.txt}}}\n")
	w.put("p.txt", "look around")
	good := strings.Replace(simulated, "agents:\n", "include: [\"a*.yaml\"]\nagents:\n", 1)
	w.put("heartbeat.yaml", good)
	const bad = "agents: {builder: {dir: agents/builder, command: [heartbeat, simulate], timeout: 10}}\n"
	broken := func() { w.put("agents.yaml", bad); _ = os.Remove(filepath.Join(w.dir, "p.txt")) }

	broken()
	if o := w.run("send", "builder", "too early"); o.status != exitConfig {
		t.Fatalf("before anything ran: %+v", o)
	}
	w.put("agents.yaml", "agents: {builder: {dir: agents/builder, command: [heartbeat, simulate], trigger: {cron: '@yearly', prompt-file: p.txt}}}\n")
	w.put("p.txt", "look around")
	r := w.background()
	broken()
	for _, command := range []string{
		"pause builder", "status", "send builder hello", "inbox builder", "events", "history", "next", "dead-letter builder", "resume builder",
		"trigger builder", "logs builder",
	} {
		o := w.run(strings.Fields(command)...)
		if command == "logs builder" {
			until(t, "a session has begun", func() bool { o = w.run("logs", "builder"); return o.status == 0 })
		}
		if o.status != 0 || strings.Count(o.stderr, "\n") != 1 ||
			!strings.Contains(o.stderr, "warning: agents.yaml:1:82: agents.builder.timeout: ") || !strings.Contains(o.stderr, "heartbeat validate") {
			t.Errorf("%s: %+v", command, o)
		}
	}
	until(t, "both prompts are done", func() bool { return w.agent("builder").Acknowledged == 2 })
	if e := envelopeOf(t, w.run("status", "-o", "json")); len(e.Warnings) != 1 {
		t.Errorf("with JSON: %v", e.Warnings)
	}
	if o := w.run("doctor"); !strings.Contains(o.stdout, "broken-configuration") || !strings.Contains(o.stdout, "agents.builder.timeout") {
		t.Errorf("doctor: %+v", o)
	}
	for _, command := range []string{"validate", "apply", "run", "reload", "diff"} {
		if o := w.run(command); o.status != exitConfig {
			t.Errorf("%s: %+v", command, o)
		}
	}
	if err := os.Remove(filepath.Join(w.dir, "heartbeat.yaml")); err != nil {
		t.Fatal(err)
	}
	if o := w.run("pause", "triage"); o.status != 0 {
		t.Errorf("without a file, while it runs: %+v", o)
	}
	r.stop()
	if o := w.run("status"); o.status != exitConfig {
		t.Errorf("without a file and a run: %+v", o)
	}
}
