package main

import (
	"strings"
	"testing"
)

// TestSendUntilCheck: what a prompt has to pass that was sent with a check of its own
// is run by the scheduler, and the prompt is handed over again until it passes.
func TestSendUntilCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    permissions: {allow: [Bash]}\n"+
		"    command: [heartbeat, simulate, --home, .home, --script, ../script.json]\n")
	w.put("script.json", `{"rules": [{"match": "Mend", "steps": [{"tool": "Bash", "command": "echo one more >> mended"}, {"reply": "All is mended!"}]}]}`)
	w.done("apply")
	w.done("send", "triage", "--until-check", `n=$(wc -l < mended); echo "it has $n lines"; [ "$n" -ge 2 ]`, "Mend it.")
	w.done("run", "--once")
	outbox := w.get("triage/.heartbeat/outbox.jsonl")
	if strings.Count(outbox, "\n") != 1 || !strings.Contains(outbox, `"verdict":{"by":"check","iteration":2`) {
		t.Errorf("outbox: %s", outbox)
	}
	if history := w.done("history", "triage"); !strings.Contains(history, "it has 1 lines") {
		t.Errorf("history: %s", history)
	}
	w.done("send", "triage", "--id", "never", "--max-iterations", "2", "--until-check", "echo first; echo second; exit 1", "Mend it.")
	w.run("run", "--once")
	out := strings.Join(strings.Fields(w.done("dead-letter", "show", "never")), " ")
	if !strings.Contains(out, "; 2 iterations") || !strings.Contains(out, "came to: after 2 iterations: exit status 1") || !strings.Contains(out, "the last check said: first second the prompt: Mend it.") || strings.Contains(out, "Its session") {
		t.Errorf("a prompt that was given up: %s", out)
	}
	w.done("send", "triage", "--id", "silent", "--max-iterations", "2", "--until-check", "false", "Mend it.")
	w.run("run", "--once")
	if out := strings.Join(strings.Fields(w.done("dead-letter", "show", "silent")), " "); !strings.Contains(out, "the last check said nothing; the prompt: Mend it.") {
		t.Errorf("one whose check says nothing: %s", out)
	}
}
