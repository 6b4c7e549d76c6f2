package main

import (
	"strings"
	"testing"
)

// threeAgents is a fleet that does what it is sent: one agent gives up what it
// began, as its client crashes after a tool.
const threeAgents = `version: 1
name: fleet
agents:
  clerk: {dir: agents/clerk, command: [heartbeat, simulate]}
  careful:
    dir: agents/careful
    command: [heartbeat, simulate, --script, ../../crash.json]
    max-restarts: 100
  quiet: {dir: agents/quiet, command: [heartbeat, simulate]}
`

// TestWhatNeedsAPersonIsSaid: what was given up and who was paused stood in one
// column of a table, or nowhere: status, a run that begins, and the end of a run
// with --once say it, with what to type, also without a scheduler.
func TestWhatNeedsAPersonIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", threeAgents)
	w.put("crash.json", `{"rules": [{"match": "begin", "steps": [{"tool": "Bash", "command": "true"}, {"crash": true}]}]}`)
	w.ok("apply")
	w.ok("send", "careful", "begin")
	const letter = "! careful: 1 dead letter; heartbeat dead-letter careful\n"
	o := w.run("run", "--once")
	if o.status != exitError || !strings.HasSuffix(o.stdout, letter) {
		t.Fatalf("run --once: %+v", o)
	}
	w.ok("send", "clerk", "later")
	out := w.ok("status")
	if !strings.HasPrefix(out, "3 agents: 3 stopped · 1 queued · 1 dead letter\n1 prompt waits, and nobody runs its agent: heartbeat run\n"+letter+"\nAGENT ") {
		t.Errorf("without a scheduler:\n%s", out)
	}

	r := w.background()
	w.ok("pause", "quiet")
	until(t, "the prompt is done", func() bool { a := w.agent("clerk"); return a.Acknowledged == 1 && a.State == "idle" })
	out = w.ok("status")
	if !strings.HasPrefix(out, "3 agents: 2 idle, 1 paused · 1 dead letter\nrun by process ") ||
		!strings.Contains(out, letter+"! quiet: paused by a person for ") || !strings.Contains(out, "; heartbeat resume quiet\n") {
		t.Errorf("with a scheduler:\n%s", out)
	}
	until(t, "the log says so", func() bool { return strings.Contains(r.stderr.String(), `do="heartbeat dead-letter careful"`) })
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}

	if out := w.ok("status"); !strings.Contains(out, "! quiet: paused by a person for ") {
		t.Errorf("when it has ended:\n%s", out)
	}
	r = w.background()
	until(t, "the next run says who is paused", func() bool { return strings.Contains(r.stderr.String(), `do="heartbeat resume quiet"`) })
	r.stop()
	var data struct {
		Summary  string
		Troubles []struct{ Agent, What, Text, Do string }
	}
	w.into(&data, "status")
	if len(data.Troubles) != 2 || data.Troubles[0].What != "dead-letters" || data.Troubles[1].What != "paused" || data.Summary == "" {
		t.Errorf("as JSON: %+v", data)
	}
}
