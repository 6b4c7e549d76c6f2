package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSendUrgent: what is urgent goes before what waits, is shown as such, counts for
// max-queue, can be dropped and awaited, and is taken once over both lanes.
func TestSendUrgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"    max-queue: 4\n")
	w.ok("apply")
	urgent := filepath.Join(w.dir, "agents/triage/.heartbeat/urgent.jsonl")
	w.ok("send", "triage", "--id", "one", "one")
	w.ok("send", "triage", "--id", "two", "two")
	if _, err := os.Lstat(urgent); err == nil {
		t.Error("the urgent lane is there before anything was urgent")
	}
	if out := w.ok("send", "triage", "--urgent", "--id", "first", "the first"); !strings.HasPrefix(out, "queued as urgent for triage: first\n") {
		t.Errorf("send says %q", out)
	}
	var sent struct{ Ahead int }
	o := envelopeOf(t, w.run("send", "triage", "--urgent", "--id", "dropped", "no more", "-o", "json"))
	if err := json.Unmarshal(o.Data, &sent); err != nil || sent.Ahead != 1 {
		t.Errorf("%d before the second urgent one, %v", sent.Ahead, err)
	}
	for _, flag := range []string{"--urgent", "--wait"} {
		if o := w.run("send", "triage", flag, "more"); o.status != exitLater || !strings.Contains(o.stderr, "the queue is full: 4 of 4") {
			t.Errorf("%s: %+v", flag, o)
		}
	}
	if out := w.ok("send", "triage", "--id", "first", "the first"); out != "already accepted: first\n" {
		t.Errorf("an id twice: %q", out)
	}
	out := w.ok("inbox", "triage")
	if at := strings.Index(out, "first"); at < 0 || at > strings.Index(out, "one") || !strings.Contains(out, "send, urgent") {
		t.Errorf("inbox says\n%s", out)
	}
	if out := w.ok("inbox", "triage", "show", "first"); !strings.Contains(out, "urgent:   yes") {
		t.Errorf("inbox show says\n%s", out)
	}
	if out := w.ok("status"); !strings.Contains(out, "4 (2 urgent)") {
		t.Errorf("status says\n%s", out)
	}
	w.ok("inbox", "triage", "drop", "dropped")
	w.ok("dead-letter", "triage", "retry", "dropped")
	if out := w.ok("inbox", "triage"); strings.Index(out, "dropped") > strings.Index(out, "one") {
		t.Errorf("what was given up returned to the other lane:\n%s", out)
	}
	w.ok("inbox", "triage", "drop", "dropped")
	r := w.background()
	until(t, "all are done", func() bool { return w.agent("triage").Acknowledged == 3 })
	if o := w.run("send", "triage", "--urgent", "--wait", "--id", "last", "the last"); o.status != 0 || !strings.Contains(o.stdout, "done: the last") {
		t.Errorf("%+v", o)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	done, err := os.ReadFile(filepath.Join(w.dir, "agents/triage/.heartbeat/outbox.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, id := range []string{"first", "one", "two", "last"} {
		next := strings.Index(string(done), `"id":"`+id+`"`)
		if next <= at {
			t.Errorf("%s is out of order:\n%s", id, done)
		}
		at = next
	}
}
