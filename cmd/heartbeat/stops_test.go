package main

import (
	"strings"
	"testing"
)

// What Stop hooks have decided stands in the journal, each turn once, and in the history
// that is asked for it.
func TestEachStopIsInTheJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	for _, text := range []string{"one", "two", "three"} {
		w.done("send", "triage", text)
	}
	w.done("run", "--once")
	events := w.done("events")
	if strings.Count(events, " stop gave ") != 2 || strings.Count(events, " done") < 3 || !strings.Contains(events, " stop let-go, ") {
		t.Errorf("events:\n%s", events)
	}
	stops := w.done("history", "--stops")
	if strings.Count(stops, "  stop ") != 3 || strings.Count(stops, "session") != 1 {
		t.Errorf("history --stops:\n%s", stops)
	}
	if plain := w.done("history"); strings.Contains(plain, "stop") {
		t.Errorf("history:\n%s", plain)
	}
}
