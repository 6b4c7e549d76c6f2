package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAQueueThatMayNotBeWritten: as on a file system that became read-only or
// without the rights, hooks can say nothing and nothing can be acknowledged; a
// session still ends when its time is over.
func TestAQueueThatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o500, 0o000} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			home := filepath.Join(w.dir, "agents/triage/.heartbeat")
			w.put("script.json", `{"rules": [{"match": "hang", "steps": [{"hang": true}]}]}`)
			w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n    timeout: 3s\n")
			w.put("agents/triage/README", "")
			as := w.ordinary()
			if out := as("send", "triage", "hang"); !strings.Contains(out, "queued") {
				t.Fatalf("send: %s", out)
			}
			ran := make(chan string, 1)
			go func() { ran <- as("run", "--once", "--once-timeout", "20s") }()
			until(t, "the turn has begun", func() bool { return strings.Contains(as("logs", "triage"), "> ") })
			if err := os.Chmod(home, mode); err != nil {
				t.Fatal(err)
			}
			out := <-ran
			if events := as("events", "triage"); !strings.Contains(events, "ended, 0 done: timeout") {
				t.Errorf("%s\n%s", events, out)
			}
			if err := os.Chmod(home, 0o700); err != nil {
				t.Fatal(err)
			}
		})
	}
}
