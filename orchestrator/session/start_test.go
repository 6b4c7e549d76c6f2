package session

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
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
			dir := t.TempDir()
			home := filepath.Join(dir, ".heartbeat")
			s := Spec{
				Agent: "a", Session: "S", Token: "t", Dir: dir, Home: home, Inbox: filepath.Join(home, "inbox.jsonl"),
				Command: []string{"/bin/true"}, StateDir: filepath.Join(dir, "state"), Grace: time.Second,
			}
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.Inbox, []byte("one\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			spoil(t, &s)
			line, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := RunShim(t.Context(), bytes.NewReader(append(line, '\n')), &out, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			var r Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Outcome == nil || r.Outcome.Why != hook.EndExited || r.Outcome.Detail == "" {
				t.Errorf("reported %s, %v", out.String(), err)
			}
			q, err := inbox.Open(inbox.Place{Inbox: s.Inbox})
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			if f, err := q.InFlight(); err != nil || f != nil {
				t.Fatalf("in flight %+v, %v", f, err)
			}
			e, err := q.Next()
			if err != nil {
				t.Fatal(err)
			}
			if f, err := q.Offer(e, inbox.Offering{}); err != nil || f.Attempt != 1 || hook.PromptFor(f, e.Prompt) != "one" {
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
