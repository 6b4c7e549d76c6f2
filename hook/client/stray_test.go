package client

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestWhoHasGivenAPrompt, in records as the client wrote them.
func TestWhoHasGivenAPrompt(t *testing.T) {
	t.Parallel()
	line := func(content, more string) string {
		quoted, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return `{"parentUuid":null,"isSidechain":false,"promptId":"P","type":"user","message":{"role":"user","content":` + string(quoted) + `},` + more + `,"version":"2.1.329"}` + "\n"
	}
	const (
		timed   = `"isMeta":true,"promptSource":"system","queueSkipSlashCommands":true,"wakeupSource":"schedule_wakeup","scheduledTaskId":"abcdef01","turnOrigin":"scheduled"`
		timed27 = `"isMeta":true,"permissionMode":"dontAsk","promptSource":"system","scheduledTaskId":"abcdef01","queuePriority":"later"`
		peer    = `"isMeta":true,"origin":{"kind":"peer","from":"uds:/tmp/cc-socks/7504.sock","verifiedPeerPid":7504,"name":"work-c6","body":"do what I say"},"promptSource":"system","turnOrigin":"peer"`
		task    = `"origin":{"kind":"task-notification","producer":"session-task"},"promptSource":"system","turnOrigin":"task_notification"`
		task27  = `"origin":{"kind":"task-notification"},"promptSource":"system"`
		ended   = "<task-notification>\n<task-id>b</task-id>\n<status>completed</status>\n<summary>Background command \"Monitor it\" completed (exit code 0)</summary>\n</task-notification>"
		event   = "<task-notification>\n<task-id>b</task-id>\n<summary>Monitor event: \"watch it\"</summary>\n<event>one</event>\n</task-notification>"
	)
	for name, c := range map[string]struct {
		line string
		want *Stray
	}{
		"a timetable":              {line("theirs", timed), &Stray{By: Timetable, Prompt: "theirs"}},
		"a timetable, 2.1.270":     {line("theirs", timed27), &Stray{By: Timetable, Prompt: "theirs"}},
		"its last word, 2.1.332":   {line("Recurring job has ended", strings.Replace(timed, `"scheduledTaskId":"abcdef01",`, "", 1)), &Stray{By: Timetable, Prompt: "Recurring job has ended"}},
		"another session":          {line("Another Claude session sent a message:\n…", peer), &Stray{By: OtherSession, From: "work-c6", Prompt: "do what I say"}},
		"a Monitor":                {line(event, task), &Stray{By: Monitor, Prompt: event}},
		"what is not known":        {line("hello", strings.ReplaceAll(peer, "peer", "voice-call")), &Stray{By: "voice-call", From: "work-c6", Prompt: "do what I say"}},
		"a person":                 {line("hello", `"origin":{"kind":"human"},"promptSource":"typed","turnOrigin":"human"`), nil},
		"a person, in a turn":      {line("hello", `"origin":{"kind":"human"},"promptSource":"queued","turnOrigin":"human"`), nil},
		"a person quotes a record": {line(`"promptSource":"system","turnOrigin":"scheduled"`, `"origin":{"kind":"human"},"promptSource":"typed","turnOrigin":"human"`), nil},
		"a task in the background": {line(ended, task), nil},
		"one, 2.1.270":             {line(ended, task27), nil},
		"the client goes on":       {line("go on", `"isMeta":true,"origin":{"kind":"auto-continuation"},"promptSource":"system","turnOrigin":"auto_continuation"`), nil},
		"a Stop hook":              {line("Stop hook feedback:\n[x]: do it", `"isMeta":true`), nil},
		"a subagent's":             {strings.Replace(line("theirs", timed), `"isSidechain":false`, `"isSidechain":true`, 1), nil},
		"no record":                {`{"promptSource":"system",` + "\n", nil},
	} {
		got := stray([]byte(c.line))
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
