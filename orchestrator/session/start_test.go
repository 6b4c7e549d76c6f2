package session

import (
	"os"
	"path/filepath"
	"testing"

	"heartbeat/hook"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// Whatever keeps a client from being started after its first entry was
// offered: the entry is queued as if that had never been.
func TestAStartThatFailsTakesTheFirstEntryBack(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, s *Spec){
		"the record cannot be written": func(t *testing.T, s *Spec) {
			inTheWay(t, filepath.Join(s.Home, "session.json", "x"))
		},
		"what may be killed cannot be kept": func(t *testing.T, s *Spec) {
			if err := os.WriteFile(s.StateDir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"there is no such command": func(_ *testing.T, s *Spec) { s.Command = []string{"/no/such/client"} },
		"the directory is gone":    func(_ *testing.T, s *Spec) { s.Dir += "/gone" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "one")
			if o := l.run("exit 0", func(s *Spec) { spoil(t, s) }); o.Why != hook.EndExited || o.Detail == "" {
				t.Errorf("ended as %+v", o)
			}
			q, err := l.queue.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer q.Unlock()
			if f, err := q.InFlight(); err != nil || f != nil {
				t.Fatalf("in flight %+v, %v", f, err)
			}
			e, err := q.Next()
			if err != nil {
				t.Fatal(err)
			}
			if f, err := q.Offer(e, inbox.Offering{}); err != nil || f.Attempt != 1 || handover.PromptFor(f, e.Prompt) != "one" {
				t.Errorf("offered as %+v, %v", f, err)
			}
		})
	}
}

// inTheWay makes folders up to a path.
func inTheWay(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
