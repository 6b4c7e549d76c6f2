package main

import (
	"strings"
	"testing"

	"heartbeat/internal/testbed"
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
	if o.status != exitTimeout || !strings.Contains(o.stderr, "hint: heartbeat stop --now does not let turns finish\n") || !strings.Contains(o.stderr, "1 session left: careful (in a turn for ") || !strings.Contains(o.stderr, "; turns are ended in ") {
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

// TestAStopSaysWhatBecameOfPrompts: who waited for the end of turns was not told that another
// terminal had cut them off or cancelled them, and stop --now said of each prompt what
// on-orphan makes of it, also of one that had been cancelled.
func TestAStopSaysWhatBecameOfPrompts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ other, want string }{
		{"stop --now -o json", "careful: its turn was cut off; its prompt it is given again by the next run\n"},
		{"cancel careful", "careful: its turn was cancelled; its prompt it is a dead letter, and heartbeat dead-letter careful retry it queues it again\n"},
		{"cancel careful --retry", "careful: its turn was cut off; its prompt it is given again by the next run\n"},
	} {
		t.Run(tt.other, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", strings.Replace(threeAgents, "crash.json]\n", "crash.json]\n    on-orphan: retry\n", 1))
			w.put("crash.json", `{"rules": [{"match": "for ever", "steps": [{"hang": true}]}]}`)
			w.ok("apply")
			w.ok("send", "careful", "--id", "it", "for ever")
			r := w.background()
			until(t, "its turn has begun", func() bool { return strings.Contains(w.run("logs", "careful").stdout, "> for ever") })
			stop, out := w.command("stop"), &testbed.Output{}
			stop.Stdout = out
			if err := stop.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "it stops", func() bool { return strings.Contains(w.ok("status"), "stopping for ") })
			if o := w.run("restart", "careful"); o.status != exitError || !strings.Contains(o.stderr, `cannot restart agent "careful": the scheduler is stopping`) || !strings.Contains(o.stderr, "hint: heartbeat status says what its end waits for") {
				t.Errorf("a restart meanwhile: %+v", o)
			}
			if said := w.ok(strings.Fields(tt.other)...); strings.HasSuffix(tt.other, "json") && !strings.Contains(said, `"prompts":{"careful":"its turn was cut off; its prompt it is given again by the next run"}`) {
				t.Errorf("as JSON: %s", said)
			}
			if err := stop.Wait(); err != nil || !strings.Contains(out.String(), " has ended\n"+tt.want) {
				t.Errorf("stop said (%v):\n%s", err, out.String())
			}
			r.ended()
		})
	}
}
