package main

import (
	"encoding/json"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// TestWhoPausedIsRecorded: a session that paused a neighbour passed for a
// person, and by what it said of itself it could pass for anybody.
func TestWhoPausedIsRecorded(t *testing.T) {
	t.Parallel()
	self := testbed.Program(t, "heartbeat")
	for how, command := range map[string]string{
		"plainly":     self + " pause other; " + self + " stop --now 2>&1 | tee ../refused",
		"in disguise": "env -u HEARTBEAT_SESSION HEARTBEAT_AGENT=other " + self + " pause other",
		"detached":    "env -u HEARTBEAT_SESSION setsid -f " + self + " pause other </dev/null >/dev/null 2>&1; sleep 3",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script, err := json.Marshal(map[string]any{"rules": []any{map[string]any{
				"match": "do it", "steps": []any{map[string]any{"tool": "Bash", "command": command}, map[string]any{"reply": "done"}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			w.put("script.json", string(script))
			w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n"+
				"    permissions: {allow: [Bash]}\n    env: {HEARTBEAT_FILE: "+w.dir+"/heartbeat.yaml}\n  other: {dir: other, command: [heartbeat, simulate]}\n")
			r := w.background()
			w.ok("send", "triage", "do it")
			until(t, "the neighbour is paused", func() bool { return w.agent("other").State == "held" })
			if a := w.agent("other"); a.Reason != `paused by a session of agent "triage"` {
				t.Errorf("status: %+v", a)
			}
			if out := w.ok("events", "other"); !strings.Contains(out, `paused by a session of agent "triage"`) {
				t.Errorf("events: %s", out)
			}
			until(t, "its own prompt is done", func() bool { return w.agent("triage").Acknowledged == 1 })
			if how == "plainly" && !strings.Contains(w.get("refused"), `cannot stop the scheduler: a session of agent "triage" asks, and only a person may`) {
				t.Errorf("a session stops its scheduler: %s", w.get("refused"))
			}
			if code := r.stop(); code != 0 {
				t.Errorf("exit status %d", code)
			}
			r = w.background() // it is known after a restart, too
			if out := w.ok("status"); !strings.Contains(squeeze(out), `paused by a session of agent "triage"`) {
				t.Errorf("after a restart: %s", out)
			}
			w.ok("resume", "other")
			w.ok("pause", "other")
			if a := w.agent("other"); a.Reason != "paused by a person" {
				t.Errorf("a person: %+v", a)
			}
			r.stop()
		})
	}
}
