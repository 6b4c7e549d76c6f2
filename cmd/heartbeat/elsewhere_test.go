package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Where there is no heartbeat.yaml, the one that may be meant is pointed at.
func TestAFleetsFileElsewhereIsPointedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yml", oneAgent)
	if o := w.run("status"); !strings.Contains(o.stderr, "there is "+filepath.Join(w.dir, "heartbeat.yml")) {
		t.Errorf("the other ending: %s", o.stderr)
	}
	w.put("agents/triage/README", "")
	w.put("heartbeat.yaml", oneAgent)
	cmd := w.command("status")
	cmd.Dir = filepath.Join(w.dir, "agents/triage")
	out, _ := cmd.CombinedOutput()
	if !strings.Contains(string(out), "there is "+filepath.Join(w.dir, "heartbeat.yaml")) {
		t.Errorf("a folder above: %s", out)
	}
}
