package main

import (
	"strings"
	"testing"
)

// TestTheWayLeadsThroughDoctor: who followed the hints from init on came to a run
// that could not work, and only then to the command that says why.
func TestTheWayLeadsThroughDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if out := w.ok("init", "-f", "mine.yaml"); !strings.Contains(out, "    heartbeat -f mine.yaml apply ") ||
		strings.Index(out, " doctor ") < strings.Index(out, " apply ") || strings.Index(out, " doctor ") > strings.Index(out, " run ") {
		t.Errorf("init:\n%s", out)
	}
	w.put("fleet.yaml", oneAgent)
	const next = "\nNext: heartbeat -f fleet.yaml doctor says what else would keep a session from working\n"
	if out := w.ok("apply", "-f", "fleet.yaml", "--dry-run"); strings.Contains(out, "Next:") {
		t.Errorf("apply --dry-run:\n%s", out)
	}
	if out := w.ok("apply", "-f", "fleet.yaml"); !strings.HasSuffix(out, next) {
		t.Errorf("apply:\n%s", out)
	}
	if out := w.ok("apply", "-f", "fleet.yaml"); strings.Contains(out, "Next:") {
		t.Errorf("apply where nothing is left to do:\n%s", out)
	}
}

// TestTheFirstFailureExplainsItself: what keeps an agent from its first session
// stands in run's log as it begins, in status and at the end of run --once, each
// time with a command that is right where -f names the file.
func TestTheFirstFailureExplainsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PATH=/nowhere") // no client
	w.put("fleet.yaml", strings.Replace(oneAgent, "    dir:", "    env-file: gone.env\n    dir:", 1))
	w.run("apply", "-f", "fleet.yaml")
	w.ok("send", "-f", "fleet.yaml", "triage", "hello")
	once := w.run("run", "-f", "fleet.yaml", "--once")
	if once.status != exitError || strings.Contains(once.stdout+once.stderr, "cannot feed") || strings.Contains(once.stdout, "open ") ||
		!strings.Contains(once.stdout, `! triage: held when its last run ended: cannot read env-file "`) ||
		!strings.Contains(once.stdout, "heartbeat -f fleet.yaml doctor triage") ||
		!strings.Contains(once.stderr, "hint: heartbeat -f fleet.yaml status shows what is left") {
		t.Errorf("run --once: %+v", once)
	}
}

// TestWhatCannotWorkIsSaidWhenTheRunBegins: an agent that works at night was found
// at night to have no client, or a directory that nobody trusts.
func TestWhatCannotWorkIsSaidWhenTheRunBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "PATH=/nowhere")
	w.put("heartbeat.yaml", oneAgent)
	w.ok("apply")
	r := w.background()
	const more = "it is not found (and 2 more: heartbeat doctor triage)"
	until(t, "the log says what waits for a person", func() bool {
		return strings.Contains(r.stderr.String(), "this waits for a person") && strings.Contains(r.stderr.String(), more)
	})
	if out := w.ok("status"); !strings.Contains(out, more) || !strings.Contains(out, "by itself") {
		t.Errorf("status:\n%s", out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if o := w.run("run", "--once"); o.status != 0 {
		t.Errorf("nothing is queued, and run --once says %+v", o)
	}
}
