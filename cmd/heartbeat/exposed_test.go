package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestADirectoryThatOthersCanWriteIsNotUsed: nothing is started there, neither a session
// nor a check; the agent beside it works. What to
// type is said, and is all that it takes.
func TestADirectoryThatOthersCanWriteIsNotUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", `version: 1
name: fleet
defaults:
  command: [heartbeat, simulate]
agents:
  open:
    dir: agents/open
    until: {check: [touch, checked]}
  fine:
    dir: agents/fine
`)
	w.ok("apply")
	w.ok("send", "open", "first")
	w.ok("send", "fine", "second")
	dir := filepath.Join(w.dir, "agents", "open")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	const why = "everybody can write it (mode 0777)"
	for _, args := range [][]string{{"validate"}, {"doctor"}, {"apply"}} {
		o := w.run(args...)
		said := strings.Join(strings.Fields(o.stdout+o.stderr), " ")
		if !strings.Contains(said, why) || !strings.Contains(said, "chmod go-w "+dir) {
			t.Errorf("%q: %+v", args, o)
		}
	}
	w.run("run", "--once", "--once-timeout", "10s")
	if _, err := os.Stat(filepath.Join(dir, "checked")); err == nil {
		t.Error("a check has run there")
	}
	if _, err := os.Stat(filepath.Join(dir, ".heartbeat", "outbox.jsonl")); err == nil {
		t.Error("a session has run there")
	}
	if got := w.get("agents/fine/.heartbeat/outbox.jsonl"); !strings.Contains(got, "done: second") {
		t.Error("the agent beside it: ", got)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.run("run", "--once")
	if got := w.get("agents/open/.heartbeat/outbox.jsonl"); !strings.Contains(got, "done: first") {
		t.Error("after chmod: ", got)
	}
}
