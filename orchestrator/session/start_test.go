package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook"
	"heartbeat/queue"
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
			if f := l.queue.InFlight(); f != nil {
				t.Fatalf("in flight %+v", f)
			}
			if e := l.offer(queue.Handover{}, false); e.Attempt != 1 || e.IsRepeat() {
				t.Errorf("offered as %+v", e)
			}
		})
	}
}

// TestAnIterationOfALongPromptComesWithTheFirstStop: what was handed over by a file before
// was put whole into the client's arguments, which are too long then, or change it.
func TestAnIterationOfALongPromptComesWithTheFirstStop(t *testing.T) {
	t.Parallel()
	for name, prompt := range map[string]string{
		"too long":              strings.Repeat("x", 200_000),
		"changed by the client": strings.Repeat("y", 60_000) + "\u200b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, prompt)
			l.unproven(queue.Handover{Via: queue.ViaStop, Session: "S0", File: "/x/prompt-1.txt"}, "fails", 0)
			told := filepath.Join(l.dir, "told")
			if o := l.run(`printf %s "$*" >"`+told+`"`, func(s *Spec) { s.Policy.Checked = true }); o.Why != hook.EndExited {
				t.Errorf("ended as %+v", o)
			}
			if data, err := os.ReadFile(told); err != nil || len(data) > 4096 || !strings.HasSuffix(string(data), laterText) {
				t.Errorf("its arguments are %d bytes, %v", len(data), err)
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
