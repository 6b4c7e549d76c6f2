package main

import (
	"os/exec"
	"strings"
	"testing"

	"heartbeat/orchestrator/status"
)

// TestWhatAChangedFileLeavesInQueuesIsSaid: an agent was removed, one got another dir and one
// another inbox, and what was queued for them was in no command's output any more.
func TestWhatAChangedFileLeavesInQueuesIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"  gone: {dir: agents/gone, command: [heartbeat, simulate]}\n  moved: {dir: agents/moved, command: [heartbeat, simulate]}\n")
	for _, name := range []string{"triage", "gone", "moved"} {
		w.put("agents/"+name+"/README", "")
	}
	w.ok("apply")
	r := w.background()
	w.ok("pause", "triage", "gone", "moved")
	for _, name := range []string{"triage", "gone", "moved"} {
		w.done("send", name, "hello")
	}
	w.put("agents/elsewhere/README", "")
	w.put("heartbeat.yaml", strings.Replace(simulated, "    dir: agents/triage\n", "    dir: agents/triage\n    inbox: other.jsonl\n", 1)+
		"  moved: {dir: agents/elsewhere, command: [heartbeat, simulate]}\n")
	says := func(text string) {
		t.Helper()
		for _, want := range []string{
			"agent triage has left 1 prompt in " + w.dir + "/agents/triage/.heartbeat/inbox.jsonl",
			"agent gone has left 1 prompt in " + w.dir + "/agents/gone/.heartbeat/inbox.jsonl",
			"agent moved has left 1 prompt in " + w.dir + "/agents/moved/.heartbeat/inbox.jsonl",
		} {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("it is not said that %q: %s", want, text)
			}
		}
	}
	says(w.run("reload").stderr)
	says(w.ok("status"))
	says(w.ok("status", "moved"))
	r.stop()
	says(r.stderr.String())
	says(w.ok("status"))
	says(w.run("apply").stderr)
	says(w.run("doctor").stdout)
	says(w.run("run", "--once").stderr)

	// What it says to type ends it.
	var fleet struct {
		OldQueues []status.OldQueue `json:"old_queues"`
		Troubles  []status.Trouble  `json:"troubles"`
	}
	w.into(&fleet, "status")
	typed := 0
	for _, trouble := range fleet.Troubles {
		if trouble.What != status.OldQueues {
			continue
		}
		_, remove, _ := strings.Cut(trouble.Do, ", or delete its queue: ")
		if out, err := exec.Command("sh", "-ec", remove).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", remove, err, out)
		}
		typed++
	}
	if text := w.ok("status"); strings.Contains(text, "has left") || typed != 3 || len(fleet.OldQueues) != 3 {
		t.Errorf("%d times typed, of %+v; still told: %s", typed, fleet.OldQueues, text)
	}
}
