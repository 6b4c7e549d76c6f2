package agent

import (
	"fmt"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
)

// TestWhatASessionSaysOfItself is in the journal when it is new, once a minute at
// most: a loop that talks for a day writes 1,440 lines, not 86,400.
func TestWhatASessionSaysOfItself(t *testing.T) {
	t.Parallel()
	a := New(&config.Agent{Name: "a"}, noon)
	a.Begin("", noon)
	a.Launched("s", Runs, noon)
	lines := 0
	say := func(text string, at time.Time) string {
		a.Reports(session.Report{Phase: hook.Turn, At: at, Said: &session.Said{At: at, Text: text}}, at)
		for _, e := range a.Notes() {
			if e.Kind == journal.Alive {
				lines++
			}
		}
		return a.Describe().Said.Text.Raw()
	}
	for i := range 24 * 60 * 60 {
		text := fmt.Sprint(i)
		if got := say(text, noon.Add(time.Duration(i)*time.Second)); got != text {
			t.Fatalf("status has %q", got)
		}
	}
	if lines != 24*60 {
		t.Errorf("%d lines", lines)
	}
	lines = 0
	for i := range 100 {
		say("the same", noon.Add(25*time.Hour+time.Duration(i)*time.Hour))
		say("", noon.Add(25*time.Hour+time.Duration(i)*time.Hour+time.Minute))
	}
	if lines != 1 {
		t.Errorf("the same words have %d lines", lines)
	}
}
