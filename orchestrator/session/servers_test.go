package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
)

// TestServersThatDidNotConnect: by the logs of this session alone, and by the last word in
// each of them.
func TestServersThatDidNotConnect(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	began := time.Date(2026, 11, 29, 3, 38, 36, 0, time.UTC)
	s := &shim{spec: Spec{Env: []string{"HOME=" + home}}, record: &hook.Record{}}
	if got := s.unconnected(true); got != nil {
		t.Errorf("before the first hook: %+v", got)
	}
	s.record.StartedAt, s.record.ClientSession, s.record.Transcript = began, "mine", "/home/x/.claude/projects/-work/mine.jsonl"
	if got := s.unconnected(true); got != nil {
		t.Errorf("without servers: %+v", got)
	}
	logs := client.Claude.Settings.ServerLogs("linux", client.In(s.spec.Env), s.record.Transcript)
	const at, before = "2026-11-29T03-38-36-984Z.jsonl", "2026-11-29T02-00-00-000Z.jsonl"
	const starts, connects = `{"debug":"Starting connection with timeout of 30000ms","sessionId":"mine"}` + "\n", `{"debug":"Successfully connected (transport: stdio) in 281ms","sessionId":"mine"}` + "\n"
	const fails = `{"error":"Connection failed (CONNECTION_CLOSED): Connection closed","sessionId":"mine"}` + "\n"
	for path, text := range map[string]string{
		"mcp-logs-good/" + at:         starts + connects,
		"mcp-logs-ends/" + at:         starts + fails,
		"mcp-logs-recovers/" + at:     starts + fails + connects,
		"mcp-logs-mute/" + at:         starts,
		"mcp-logs-another/" + at:      `{"error":"Connection failed (X): x","sessionId":"another"}` + "\n",
		"mcp-logs-earlier/" + before:  starts + fails,
		"mcp-logs-damaged/" + at:      "{\n\x00\n" + fails[:20],
		"something-else/" + at:        fails,
		"mcp-logs-unterminated/" + at: starts + fails[:len(fails)-1],
	} {
		path = filepath.Join(logs, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(logs, "mcp-logs-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := Server{"ends", "Connection closed"}
	if got := s.unconnected(false); !slices.Contains(got, closed) || slices.ContainsFunc(got, func(x Server) bool { return x.Name != "ends" && x.Name != "unterminated" }) {
		t.Errorf("while it lives: %+v", got)
	}
	want := []Server{closed, {"mute", stillConnects}}
	got := slices.DeleteFunc(s.unconnected(true), func(x Server) bool { return x.Name == "unterminated" })
	if !slices.Equal(got, want) {
		t.Errorf("at its end: %+v, want %+v", got, want)
	}
	if text := ServersText(got); text != "MCP server ends did not connect: Connection closed; nor did mute" {
		t.Error(text)
	}
}
