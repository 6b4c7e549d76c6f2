package session

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
)

// TestWhichToolRuns follows a transcript that grows: a call without its result runs,
// since it was seen; the end of the turn ends what was interrupted; what a
// conversation held before is none of this session's.
func TestWhichToolRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.jsonl")
	write := func(lines string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(lines)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	call := func(id, name string) string {
		return `{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{}}]}}` + "\n"
	}
	result := func(id string) string {
		return `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}]}}` + "\n"
	}
	const refusal = `{"type":"assistant","isApiErrorMessage":true,"apiErrorStatus":429,"error":"rate_limit","message":{"role":"assistant","content":[{"type":"text","text":"resets 10pm (UTC)"}]}}` + "\n"
	write(call("old", "Bash") + refusal)
	size, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var c course
	c.Path, c.Offset = path, size.Size() // a conversation that goes on
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r := &hook.Record{Phase: hook.Turn}
	r.Transcript = path
	read := func() string {
		now = now.Add(time.Second)
		c.read(r, now)
		if tool := c.tool(); tool != nil {
			return tool.Name
		}
		return ""
	}
	if got := read(); got != "" || c.refused != nil || c.answered {
		t.Errorf("what it held before: %q, %+v", got, c.refused)
	}
	write(call("a", "Bash") + call("b", "WebFetch"))
	if got := read(); got != "Bash" || !c.answered || !c.tool().Since.Equal(now) {
		t.Errorf("two run, the first one is %q", got)
	}
	write(result("a")[:20])
	if got := read(); got != "Bash" {
		t.Errorf("by half a line %q runs", got)
	}
	write(result("a")[20:])
	if got := read(); got != "WebFetch" || !c.ended.Equal(now) {
		t.Errorf("the first has ended: %q", got)
	}
	r.Phase = hook.Unattended // it was interrupted
	if got := read(); got != "" {
		t.Errorf("after its turn %q runs", got)
	}
	r.Phase = hook.Turn
	write(refusal)
	if read(); c.refused == nil || c.refused.Status != 429 {
		t.Errorf("refused: %+v", c.refused)
	}
	write(call("c", "Bash"))
	if read(); c.refused != nil {
		t.Errorf("an answer came after the refusal: %+v", c.refused)
	}
}

// TestWhichToolsWereRefused: a wrong rule showed in logs alone.
func TestWhichToolsWereRefused(t *testing.T) {
	t.Parallel()
	var c course
	now := time.Now()
	for i, command := range []string{"git push", "git status", "ls"} {
		id := string(rune('a' + i))
		c.take([]byte(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"`+id+`","name":"Bash","input":{"command":"`+command+`"}}]}}`), now)
		c.take([]byte(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","is_error":true,"tool_use_id":"`+id+
			`","content":"Permission to use Bash has been denied because Claude Code is running in don't ask mode. IMPORTANT: x"}]}}`), now)
	}
	if got := DeniedText(c.denied); got != "3 tool calls were refused: Bash(git *) 2 times, Bash(ls *)" {
		t.Error(got)
	}
	if c.tool() != nil {
		t.Errorf("%+v", c.tool())
	}
}
