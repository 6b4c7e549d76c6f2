package main

import (
	"strings"
	"testing"
)

// TestWhoWaitsForAReplySeesWhy: send --wait said nothing until the reply came,
// and nothing of the prompt when it was interrupted.
func TestWhoWaitsForAReplySeesWhy(t *testing.T) {
	t.Parallel()
	f := startFleet(t, `{"rules": [{"match": "long", "steps": [{"hang": true}]}]}`)
	until(t, "the scheduler answers", func() bool { return f.world.fleet().Scheduler.PID == f.cmd.Process.Pid })
	f.ok("pause", "triage")
	child, out := f.sit("send", "triage", "--wait", "--id", "mine", "later")
	until(t, "it says why it waits", func() bool {
		return strings.Contains(out.String(), "queued, the next one; paused by a person for ")
	})
	if text := unwrapped(out.String()); !strings.Contains(text, "; heartbeat resume triage") {
		t.Errorf("it does not say what to type: %q", text)
	}
	press(t, child, "\x03")
	if code := exited(t, child); code != exitError {
		t.Errorf("status %d", code)
	}
	if text := unwrapped(out.String()); !strings.Contains(text, "interrupted") || !strings.Contains(text, "the prompt stays queued: heartbeat status triage; heartbeat inbox triage drop mine takes it out") {
		t.Errorf("interrupted, it says %q", text)
	}

	f.ok("send", "triage", "long")
	f.ok("send", "triage", "behind it")
	f.ok("resume", "triage")
	until(t, "the first is done", func() bool { return f.agent("triage").Acknowledged == 1 })
	if out := f.ok("send", "triage", "and another"); strings.Contains(out, "It waits") {
		t.Errorf("a session works, and send says %s", out)
	}
	child, out = f.sit("send", "triage", "--wait", "--timeout", "8s", "the last")
	until(t, "it says how many come before", func() bool { return strings.Contains(out.String(), "queued, 3 before it; triage is running") })
	if code := exited(t, child); code != exitTimeout {
		t.Errorf("status %d", code)
	}

	// Without a terminal nothing moves.
	o := f.run("send", "triage", "--wait", "--timeout", "1500ms", "and the very last")
	if o.status != exitTimeout || strings.Contains(o.stderr, "\r") || !strings.HasPrefix(o.stdout, "queued for triage: ") {
		t.Errorf("without a terminal: %+v", o)
	}
}

// unwrapped is what a terminal shows with each message in one line.
func unwrapped(text string) string { return strings.ReplaceAll(text, "\r\n  ", " ") }
