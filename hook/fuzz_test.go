package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
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

// Whatever the payload and the session's record say, a decision about an
// entry that was only offered does not acknowledge it without proof.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{"hook_event_name":"Stop","session_id":"S"}`), []byte(`{"version":1}`))
	f.Add([]byte(`{"hook_event_name":"PreToolUse","agent_id":"x"}`), []byte(`{"version":1,"policy":{"background":"wait"},"phase":"turn"}`))
	f.Add([]byte(`{"hook_event_name":"SessionEnd","reason":"clear"}`), []byte(`{"ruling":{"final":true}}`))
	f.Fuzz(func(t *testing.T, data, record []byte) {
		p, err := client.Claude.Hooks.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var r Record
		if json.Unmarshal(record, &r) != nil {
			return
		}
		now := time.Now()
		d := decide(&r, facts{now: now, event: p, flight: &inbox.InFlight{
			State:       inbox.Offered,
			Offering:    inbox.Offering{Via: inbox.ViaStop, PromptID: "a prompt that no payload has guessed"},
			DeliveredAt: now.Add(-time.Second),
		}})
		if d.acknowledge != nil || d.advance != "" && d.advance != inbox.Offered {
			t.Fatalf("payload %q, record %q: %+v", data, record, d)
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
