package main

import (
	"strings"
	"testing"
)

// An agent that put a tracked settings file back (git checkout .) ended as
// unattended, and nobody could tell why.
func TestASessionThatTakesOurHooksAwayIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", `{"rules": [{"match": "tidy", "steps": [{"tool": "Bash", "command": "echo '{}' > .claude/settings.json"}]}]}`)
	w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n"+
		"    permissions: {allow: [Bash]}\n    idle-grace: 1s\n    max-restarts: 0\n    max-attempts: 1\n")
	w.put("agents/triage/README", "")
	w.done("send", "triage", "tidy up")
	o := w.run("run", "--once")
	if events := w.ok("events", "triage"); !strings.Contains(events, "our hooks went from .claude/settings.json in the session") {
		t.Errorf("events:\n%s\n%s%s", events, o.stdout, o.stderr)
	}
}
