package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFullQueue: send is refused with 75 and a hint, what was accepted is not; a line
// that somebody appends is taken, and told.
func TestAFullQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+"    max-queue: 2\n")
	w.ok("apply")
	w.ok("send", "triage", "one")
	w.ok("send", "triage", "--id", "two", "two")
	if o := w.run("send", "triage", "three"); o.status != exitLater || o.stdout != "" ||
		!strings.Contains(o.stderr, "the queue is full: 2 of 2") || !strings.Contains(o.stderr, "hint: send it again later") {
		t.Errorf("%+v", o)
	}
	if e := envelopeOf(t, w.run("send", "triage", "three", "-o", "json")); *e.Error.Code != "queue-full" {
		t.Errorf("%+v", e)
	}
	if out := w.ok("send", "triage", "--id", "two", "two"); !strings.Contains(out, "already accepted") {
		t.Errorf("one that was accepted: %s", out)
	}
	if out := w.ok("status"); !strings.Contains(out, "its queue is full: 2 of 2 prompts") {
		t.Errorf("status says:\n%s", out)
	}
	f, err := os.OpenFile(filepath.Join(w.dir, "agents/triage/.heartbeat/inbox.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("four\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if out := w.ok("status"); !strings.Contains(out, "over max-queue: 3 of 2 prompts, appended to the inbox itself") {
		t.Errorf("status says:\n%s", out)
	}
}
