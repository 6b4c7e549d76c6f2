package main

import (
	"strings"
	"testing"
)

// TestATriggerIsPaused: what people and programs see of it, with a run and without one.
func TestATriggerIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(simulated, "    trigger: {", "    triggers:\n      - {name: look, webhook: /look, prompt: x}\n      - {name: nightly, ", 1)+
		"listen: [{address: \"unix:hooks.sock\", serve: [webhooks]}]\n")
	w.ok("apply")
	if out := w.done("pause", "triage", "--trigger", "nightly"); !strings.Contains(out, "triage: trigger nightly is paused; ") || !strings.Contains(out, "resume triage --trigger nightly ends that") {
		t.Errorf("without a run: %s", out)
	}
	shown := func(when string) {
		t.Helper()
		if out := squeeze(w.ok("status")); !strings.Contains(out, "trigger nightly is paused by a person for") || !strings.Contains(out, "resume triage --trigger nightly") || strings.Contains(out, "next") {
			t.Errorf("%s: status: %s", when, out)
		}
		if out := squeeze(w.ok("next")); !strings.Contains(out, "triage nightly not while it is paused") {
			t.Errorf("%s: next: %s", when, out)
		}
		if out := squeeze(w.run("doctor").stdout); !strings.Contains(out, "trigger nightly is paused by a person") {
			t.Errorf("%s: doctor: %s", when, out)
		}
	}
	shown("without a run")
	r := w.background()
	shown("with a run")
	w.done("pause", "triage", "--trigger", "look", "--for", "1h")
	if out := squeeze(w.ok("next")); !strings.Contains(out, "triage look not while it is paused, until ") {
		t.Errorf("next: %s", out)
	}
	if code, answer := w.deliver("hooks.sock", "/look", "{}", "one"); code != 503 || !strings.Contains(answer["reason"], "paused") {
		t.Errorf("its webhook: %d %v", code, answer)
	}
	if out := w.done("trigger", "triage", "nightly"); !strings.Contains(squeeze(out), "nightly 1") {
		t.Errorf("by hand: %s", out)
	}
	for _, args := range [][]string{{"pause", "--all", "--trigger", "look"}, {"resume", "triage", "--trigger", "none"}, {"pause", "triage", "--trigger", "none"}} {
		if o := w.run(args...); o.status == 0 || !strings.Contains(o.stderr, "hint: ") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	w.done("resume", "triage") // is about the agent
	shown("after a resume of the agent")
	for _, name := range []string{"look", "nightly"} {
		if out := w.done("resume", "triage", "--trigger", name); !strings.Contains(out, "triage: trigger "+name+" fires by itself") {
			t.Errorf("resume: %s", out)
		}
	}
	if out := w.ok("status"); strings.Contains(out, "paused") {
		t.Errorf("status: %s", out)
	}
	if code, _ := w.deliver("hooks.sock", "/look", "{}", "one"); code != 202 {
		t.Errorf("its webhook after that: %d", code)
	}
	if out := squeeze(w.ok("events", "triage")); !strings.Contains(out, "paused nightly") || !strings.Contains(out, "resumed nightly") {
		t.Errorf("events: %s", out)
	}
	r.stop()
}
