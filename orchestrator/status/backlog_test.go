package status

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
)

// declare returns an agent whose directory is below dir.
func declare(t testing.TB, dir, name string) *config.Agent {
	t.Helper()
	home := filepath.Join(dir, name, ".heartbeat")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return &config.Agent{Name: name, Dir: filepath.Join(dir, name), Home: home, Inbox: filepath.Join(home, "inbox.jsonl")}
}

func put(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestBacklogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		busy, idle := declare(t, dir, "busy"), declare(t, dir, "idle")
		put(t, busy.Inbox, "one\ntwo\nthree\n")
		put(t, idle.Inbox, "nobody asks\n")
		if err := queue.Settle(t.Context(), busy); err != nil {
			t.Fatal(err)
		}
		var b Backlogs
		look := func(want ...Backlog) {
			t.Helper()
			got := slices.Clone(b.Look(func() []Queue { return []Queue{{busy, false}, {idle, true}} }))
			for i := range want {
				if (got[i].First != "") != (got[i].Queued > 0) {
					t.Errorf("the first of %d is %q", got[i].Queued, got[i].First)
				}
				if got[i].First = ""; got[i] != want[i] {
					t.Errorf("got %+v, want %+v", got[i], want[i])
				}
			}
		}
		first := time.Now()
		look(Backlog{Agent: "busy", Queued: 3, Since: first}, Backlog{Agent: "idle"})

		// What others do shows at the next look, and a look is good for a while.
		dead := inbox.DeadLetterFile(idle.Inbox)
		put(t, dead, `{"entry_id":"x","raw_line":"y","reason":"poison"}`+"\n")
		put(t, busy.Inbox, "four\n")
		look(Backlog{Agent: "busy", Queued: 3, Since: first}, Backlog{Agent: "idle"})
		time.Sleep(BacklogFor)
		look(Backlog{Agent: "busy", Queued: 4, Since: first}, Backlog{Agent: "idle", Queued: 1, Since: time.Now(), Dead: 1})
		if err := errors.Join(os.Remove(dead), os.Remove(busy.Inbox)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(BacklogFor)
		look(Backlog{Agent: "busy"}, Backlog{Agent: "idle"})
	})
}

// BenchmarkBacklogs is a look at 10,000 queues of which one in a hundred has
// something in it.
func BenchmarkBacklogs(b *testing.B) {
	dir := b.TempDir()
	var queues []Queue
	for i := range 10_000 {
		a := declare(b, dir, fmt.Sprintf("agent-%d", i))
		if i%100 == 0 {
			put(b, a.Inbox, "a prompt\n")
		}
		queues = append(queues, Queue{a, i%100 != 0})
	}
	var all Backlogs
	for b.Loop() {
		all.at = time.Time{}
		if n := len(all.Look(func() []Queue { return queues })); n != 10_000 {
			b.Fatal(n)
		}
	}
}
