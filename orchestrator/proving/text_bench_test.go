package proving

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/queue"
)

// BenchmarkSettle is the end of a session behind which 10,000 prompts are queued: the first
// one, one where the inbox has changed, one where it has not, and one after which all of them
// are gone.
func BenchmarkSettle(b *testing.B) {
	const queued = 10_000
	home := filepath.Join(b.TempDir(), ".heartbeat")
	a := &config.Agent{
		Name: "a", Dir: filepath.Dir(home), Home: home, Inbox: filepath.Join(home, "inbox.jsonl"), MaxEntry: config.DefaultMaxEntry,
		Until: config.NewUntil("true"),
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		b.Fatal(err)
	}
	letters := make([]inbox.Letter, queued)
	for i := range letters {
		letters[i] = inbox.Letter{ID: fmt.Sprint("m", i), Source: "send", Prompt: fmt.Sprintf("prompt %d: %0200d", i, i)}
	}
	q, err := queue.Open(a)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	if _, err := q.AppendBatch(b.Context(), letters); err != nil {
		b.Fatal(err)
	}
	state := b.TempDir()
	desk := func() *Desk {
		return New(Options{StateDir: state, Log: slog.New(slog.DiscardHandler), Note: func(journal.Event) {}})
	}
	settle := func(d *Desk, want int) {
		if n, err := d.Settle(b.Context(), a); n != want || err != nil {
			b.Fatalf("%d were filed, not %d: %v", n, want, err)
		}
	}
	b.Run("remember", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := os.RemoveAll(filepath.Join(state, "texts")); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			desk().Sent(a, letters...)
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			settle(desk(), 0)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		long := time.Now().Add(-time.Hour)
		folders, err := filepath.Glob(filepath.Join(state, "texts", "*"))
		if err != nil || len(folders) != 1 {
			b.Fatalf("%q, %v", folders, err)
		}
		if err := errors.Join(os.Chtimes(a.Inbox, long, long), os.Chtimes(folders[0], long, long)); err != nil {
			b.Fatal(err)
		}
		d := desk()
		for b.Loop() {
			settle(d, 0)
		}
	})
	b.Run("all gone", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			desk().Sent(a, letters...)
			for _, name := range []string{".ids", ".inbox.jsonl.kept", ".inbox-meta", ".inbox-offset", ".dead-letter.jsonl"} {
				_ = os.Remove(filepath.Join(home, name))
			}
			if err := os.WriteFile(a.Inbox, nil, 0o600); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			settle(desk(), queued)
		}
	})
}
