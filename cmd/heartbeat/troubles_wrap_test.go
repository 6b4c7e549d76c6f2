package main

import (
	"strings"
	"testing"

	"heartbeat/orchestrator/status"
)

// TestATroubleIsWrappedAtBlanks on a terminal, but for what is there to be copied.
func TestATroubleIsWrappedAtBlanks(t *testing.T) {
	t.Parallel()
	p := page{columns: 40}
	long := "heartbeat resume " + strings.Repeat("x", 40)
	troubleText(&p, 2, "triage: ", status.Trouble{Text: "it has spent 23 of 5 turns of its budget for the day", Do: long, Then: "it continues by itself when the day is over"})
	for line := range strings.Lines(p.buf.String()) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 40 && !strings.HasSuffix(line, long) {
			t.Errorf("a line of %d columns: %q", len(line), line)
		}
	}
	for _, want := range []string{"triage: it has spent 23 of 5 turns of\n  its budget", "do    " + long + "\n", "then  it continues by itself when\n          the day"} {
		if !strings.Contains(p.buf.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, p.buf.String())
		}
	}
}
