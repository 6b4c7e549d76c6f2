package logs

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/transcript"
)

// TestAllSessionsSinceATime: what an agent had said in the sessions before its last one
// was left out, also where the last one had said nothing.
func TestAllSessionsSinceATime(t *testing.T) {
	t.Parallel()
	r, dir := newRoom(t, "triage"), t.TempDir()
	j := journal.New(storetest.New(t, dir), slog.New(slog.DiscardHandler), nil)
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	session := func(id string, began int, said ...string) {
		t.Helper()
		for i, text := range said {
			r.says(id, began+i, text)
		}
		j.Add(journal.Event{At: at(began + 5), Kind: journal.Ended, Agent: "triage", Session: id, Started: at(began)})
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	session("before", 0, "too early")
	session("first", 10, "one", "two")
	session("crashed", 20)
	session("third", 30, "three")
	r.says("first", 41, "four") // a session that has continued the conversation of the first
	session("resumed", 40)
	session("last", 50)
	r.shows("last")

	c := &Conversation{Agent: r.Agent, StateDir: r.state}
	defer c.Close()
	shown, err := Shown(r.Agent, r.state)
	if err == nil {
		err = c.Of(shown)
	}
	if err == nil {
		err = Since([]*Conversation{c}, dir, at(11))
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, err := Newest([]*Conversation{c}, 100, func(l transcript.Line) bool { return !l.At.Before(at(11)) })
	var said []string
	for _, l := range lines {
		said = append(said, l.Text.Raw())
	}
	if got := strings.Join(said, " "); got != "two three four" || err != nil {
		t.Errorf("said %q, %v", got, err)
	}
	if got := c.Silent(); !slices.Equal(got, []string{"crashed", "last"}) {
		t.Errorf("silent: %q", got)
	}
}
