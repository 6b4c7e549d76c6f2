package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A damaged record of ours had its agent back off without a word of what to do.
func TestADamagedRecordSaysWhatToMoveAway(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{"what was applied": "state/fleet/applied/*/applied.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", oneAgent+"    command: [heartbeat, simulate]\n    context: resume\n    max-restarts: 0\n    max-attempts: 1\n")
			w.put("agents/triage/README", "")
			w.done("send", "triage", "one")
			w.done("run", "--once")
			found, err := filepath.Glob(filepath.Join(w.dir, pattern))
			if err != nil || len(found) != 1 {
				t.Fatalf("%q, %v", found, err)
			}
			if err := os.WriteFile(found[0], []byte(`{"torn`), 0o600); err != nil {
				t.Fatal(err)
			}
			w.done("send", "triage", "two")
			o := w.run("run", "--once")
			advice := regexp.MustCompile(`mv '([^']+)' '([^']+)'`).FindStringSubmatch(o.stdout + o.stderr)
			if o.status != 1 || advice == nil || advice[1] != found[0] {
				t.Fatalf("run says nothing of what to do: %d\n%s%s", o.status, o.stdout, o.stderr)
			}
			if err := os.Rename(advice[1], advice[2]); err != nil {
				t.Fatal(err)
			}
			w.done("run", "--once")
			if got := w.get("agents/triage/.heartbeat/outbox.jsonl"); strings.Count(got, "\n") != 2 {
				t.Errorf("done: %s", got)
			}
		})
	}
}
