package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/config"
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

// TestSendSaysWhatIsNotRecorded: where it cannot be kept what a prompt says that has to be
// proven, as on a full disk, it is queued, and its sender is told.
func TestSendSaysWhatIsNotRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", proves)
	w.put("triage/x", "")
	if o := w.run("send", "triage", "one"); o.status != 0 || strings.Contains(o.stderr, "nobody notices") {
		t.Fatalf("recorded: %+v", o)
	}
	w.unrecorded()
	o := w.run("send", "triage", "two")
	if o.status != 0 || !strings.Contains(o.stdout, "queued for triage") || !strings.Contains(o.stderr, "the prompt is queued, but its agent could change it unnoticed: cannot record what") {
		t.Errorf("not recorded: %+v", o)
	}
}

// TestThePageSaysWhatIsNotRecorded: as send does; it said only that the prompt is queued.
func TestThePageSaysWhatIsNotRecorded(t *testing.T) {
	w := newWorld(t)
	t.Setenv("HEARTBEAT_STATE_DIR", filepath.Join(w.dir, "state"))
	w.put("heartbeat.yaml", proves)
	w.put("triage/x", "")
	file := filepath.Join(w.dir, "heartbeat.yaml")
	fleet, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	of := &web{app: &app{}}
	of.app.File = file
	of.fleet.Store(fleet)
	if said, err := of.Send(t.Context(), "triage", "one", "1"); err != nil || said != "triage: queued" {
		t.Fatalf("recorded: %q, %v", said, err)
	}
	w.unrecorded()
	if said, err := of.Send(t.Context(), "triage", "two", "2"); err != nil || !strings.Contains(said, "is queued, but its agent could change it unnoticed: cannot record what") {
		t.Errorf("not recorded: %q, %v", said, err)
	}
}

// proves is a fleet whose prompts have to be proven.
const proves = "version: 1\nname: fleet\nagents:\n  triage: {dir: triage, until: {check: [\"true\"]}, command: [heartbeat, simulate]}\n"

// unrecorded has it be impossible to record what prompts say.
func (w *world) unrecorded() {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "state", "*", "texts"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%q, %v", found, err)
	}
	if err := errors.Join(os.RemoveAll(found[0]), os.WriteFile(found[0], nil, 0o600)); err != nil {
		w.t.Fatal(err)
	}
}
