package session

import (
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
)

// TestStraysAreKeptAndCounted: the newest, cut, with their number in the session.
func TestStraysAreKeptAndCounted(t *testing.T) {
	t.Parallel()
	c, noon := &course{}, time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	const line = `{"type":"user","message":{"role":"user","content":"PROMPT"},"promptSource":"system","scheduledTaskId":"a"}`
	for n := range keptStrays + 3 {
		c.take([]byte(strings.Replace(line, "PROMPT", strings.Repeat("x", 100*(n+1)), 1)), noon)
	}
	first, last := c.strays[0], c.strays[len(c.strays)-1]
	if len(c.strays) != keptStrays || first.Number != 4 || last.Number != keptStrays+3 || last.By != client.Timetable || !last.At.Equal(noon) || len(last.Prompt) > mostStray+len("…") {
		t.Errorf("%d are kept, from %+v to %+v", len(c.strays), first, last)
	}
	for text, all := range map[string][]Stray{
		`1 prompt came past the queue, from the client's own timetable: "do it"`:          {{Number: 1, By: client.Timetable, Prompt: "do it"}},
		`3 prompts came past the queue, the last from another session (b): "do it"`:       {{Number: 2}, {Number: 3, By: client.OtherSession, From: "b", Prompt: "do it"}},
		`1 prompt came past the queue, from a Monitor that it runs: ""`:                   {{Number: 1, By: client.Monitor}},
		`1 prompt came past the queue, from what the client calls "voice-call" (x): "do"`: {{Number: 1, By: "voice-call", From: "x", Prompt: "do"}},
	} {
		if got := StraysText(all); got != text {
			t.Errorf("got  %s\nwant %s", got, text)
		}
	}
}
