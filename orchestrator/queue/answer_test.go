package queue

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
)

func TestAhead(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "a", "b", "c")
	ahead := func(id string, n int, flies bool) {
		t.Helper()
		if got, inFlight, err := Ahead(a, id); got != n || inFlight != flies || err != nil {
			t.Errorf("%s: %d before it, in flight %t, %v", id, got, inFlight, err)
		}
	}
	ahead("a", 0, false)
	ahead("c", 2, false)
	start(t, a, inbox.Started)
	ahead("a", 0, true)
	ahead("b", 1, false)
	ahead("c", 2, false)
	ahead("gone", 3, false)
}

// An answer holds where the queue asks, and nowhere else.
func TestAnswer(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "a", "b", "c")
	if _, err := Answer(t.Context(), a, "start"); err == nil {
		t.Error("a queue that asks nothing was answered")
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(a.Inbox), inbox.CursorFile), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked, err := Question(t.Context(), a)
	if err != nil || asked == nil || len(asked.Answers) != 2 || asked.Answers[0].Given != 3 {
		t.Fatalf("%+v, %v", asked, err)
	}
	unlock, err := flock.TryLock(filepath.Join(filepath.Dir(a.Inbox), inbox.SessionLock))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Answer(t.Context(), a, "start"); func() bool { _, busy := errors.AsType[*BusyError](err); return !busy }() {
		t.Errorf("while a session lives: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if given, err := Answer(t.Context(), a, "start"); err != nil || given.Given != 3 {
		t.Fatalf("%+v, %v", given, err)
	}
	expectQueue(t, a, []string{"a", "b", "c"}, nil)
	if asked, err := Question(t.Context(), a); asked != nil || err != nil {
		t.Errorf("it asks again: %+v, %v", asked, err)
	}
}

// The newest replies of several agents, in the order of time; one whose outbox
// cannot be read keeps nobody from the others.
func TestRepliesOfSeveral(t *testing.T) {
	t.Parallel()
	a, b := newAgent(t, "a"), newAgent(t, "b")
	b.Name = "builder"
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	write := func(agent *config.Agent, lines string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(agent.Home, "outbox.jsonl"), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(a, `{"delivery_id":"1","entry_id":"x","acknowledged_at":"2026-03-01T12:00:00Z","reply":"one"}
torn
{"delivery_id":"3","entry_id":"x","acknowledged_at":"2026-03-01T14:00:00Z","reply":"three"}
`)
	write(b, `{"delivery_id":"2","entry_id":"x","acknowledged_at":"2026-03-01T13:00:00Z","reply":"two"}`+"\n")
	for _, tt := range []struct {
		since time.Time
		most  int
		want  string
	}{{time.Time{}, 10, "onetwothree"}, {time.Time{}, 2, "twothree"}, {at.Add(time.Hour), 10, "twothree"}, {at.Add(5 * time.Hour), 10, ""}} {
		all, err := Replies(t.Context(), []*config.Agent{a, b}, tt.since, tt.most, nil)
		var got strings.Builder
		for _, r := range all {
			got.WriteString(r.Reply)
		}
		if got.String() != tt.want || err != nil {
			t.Errorf("%+v: %q, %v", tt, got.String(), err)
		}
	}
}
