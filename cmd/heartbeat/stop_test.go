package main

import (
	"strings"
	"testing"
)

// The scheduler is ended from another terminal: after its turns, or at once; who
// waits for that sees what it waits for.
func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(threeAgents, "crash.json]\n", "crash.json]\n    on-orphan: retry\n", 1))
	w.put("crash.json", `{"rules": [{"match": "for ever", "steps": [{"hang": true}]}]}`)
	w.ok("apply")
	if o := w.run("stop"); o.status != exitNotRunning || o.stdout != "" {
		t.Errorf("without a scheduler: %+v", o)
	}
	r := w.background()
	if out := w.ok("stop"); !strings.HasPrefix(out, "process ") || !strings.HasSuffix(out, " has ended\n") {
		t.Errorf("stop: %s", out)
	}
	if code := r.ended(); code != 0 || !strings.Contains(r.stderr.String(), `why="asked to stop"`) {
		t.Errorf("the scheduler ended with %d:\n%s", code, r.stderr.String())
	}

	r = w.background()
	w.ok("send", "careful", "for ever")
	until(t, "its turn has begun", func() bool { return strings.Contains(w.run("logs", "careful").stdout, "> for ever") })
	o := w.run("stop", "--timeout", "1500ms")
	if o.status != exitTimeout || !strings.Contains(o.stderr, "hint: heartbeat stop --now does not let turns finish\n") {
		t.Errorf("a turn that does not end: %+v", o)
	}
	if a := w.agent("careful"); a.State != "running" && a.State != "ending" {
		t.Errorf("its session was not left alone: %+v", a)
	}
	var data struct {
		PID     int
		Stopped bool
	}
	if w.into(&data, "stop", "--now"); data.PID != r.cmd.Process.Pid || !data.Stopped {
		t.Errorf("as JSON: %+v", data)
	}
	if code := r.ended(); code != 0 {
		t.Errorf("the scheduler ended with %d", code)
	}
	if out := w.ok("inbox", "careful"); !strings.Contains(out, "for ever") {
		t.Errorf("its prompt is gone: %s", out)
	}
}
