package main

import (
	"strings"
	"testing"
)

// TestAPromptThatCrashesItsClientBeforeItIsProvenIsPoison: the client dies of one prompt,
// which a Stop hook hands over, before its transcript has it. Each start was paid, in the
// end the agent was held, and what was queued behind it waited.
func TestAPromptThatCrashesItsClientBeforeItIsProvenIsPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("crash.json", `{"think": "1ms", "transcript-delay": "1m", "rules": [{"match": "ultracode", "steps": [{"crash": true}]}]}`)
	w.put("heartbeat.yaml", `version: 1
name: fleet
agents:
  careful:
    dir: agents/careful
    command: [heartbeat, simulate, --script, ../../crash.json]
    max-attempts: 2
`)
	w.ok("apply")
	for _, prompt := range []string{"first", "say ultracode", "second", "third"} { // no argument carries that word
		w.ok("send", "careful", prompt)
	}
	if o := w.run("run", "--once"); o.status != exitError || !strings.Contains(o.stdout, "! careful: 1 dead letter") {
		t.Errorf("run --once: %+v", o)
	}
	letters := w.ok("dead-letter", "careful")
	if strings.Count(letters, "poison") != 1 || !strings.Contains(letters, "say ultracode") {
		t.Errorf("dead letters:\n%s", letters)
	}
	outbox := w.get("agents/careful/.heartbeat/outbox.jsonl")
	for _, prompt := range []string{"first", "second", "third"} {
		if !strings.Contains(outbox, `"done: `+prompt+`"`) {
			t.Errorf("%q is not done:\n%s", prompt, outbox)
		}
	}
}
