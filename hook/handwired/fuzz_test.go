package handwired

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever comes on stdin: the hand-wired hook ends with 0, hands over the
// first entry or says why not, and never acknowledges what nobody was given.
func FuzzHookStdin(f *testing.F) {
	for _, s := range []string{
		"", "x", "{}", `{"hook_event_name":"Stop"}`, `{"hook_event_name":"Stop","session_id":"S","stop_hook_active":true,"prompt_id":"P"}`,
		`{"hook_event_name":"Stop","session_id":7,"background_tasks":"x"`, `{"hook_event_name":"Stop","transcript_path":"/dev/zero","session_id":"S"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "inbox.jsonl")
		if err := os.WriteFile(path, []byte("first\nsecond\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		status := Main(Call{
			Args: []string{"--inbox", path}, Stdin: bytes.NewReader(data), Stdout: &stdout, Stderr: &stderr,
			Getenv: func(string) string { return "" },
		})
		cut := strings.Contains(stderr.String(), "was cut off") && stdout.Len() == 0
		if status != 0 || !cut && !strings.HasPrefix(stdout.String(), `{"decision":"block","reason":"first"}`) {
			t.Fatalf("payload %q: status %d, stdout %q, stderr %q", data, status, stdout.String(), stderr.String())
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "outbox.jsonl")); err == nil {
			t.Fatalf("payload %q acknowledged something", data)
		}
	})
}

// Flags are refused or understood; a path is always absolute, and no interval
// is negative.
func FuzzFlags(f *testing.F) {
	f.Add("--inbox\x00a\x00--idle-interval\x0090s")
	f.Add("--inbox\x00a\x00--mode\x00persist\x00--on-orphan\x00retry\x00--max-attempts\x00-3")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		for _, parse := range []func([]string) (options, error){parseStop, parseRecover} {
			o, err := parse(args)
			if errors.Is(err, errHelp) || err != nil {
				continue
			}
			if !filepath.IsAbs(o.inbox) || o.idle < 0 {
				t.Fatalf("%q: %+v", args, o)
			}
		}
	})
}
