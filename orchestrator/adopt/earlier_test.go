package adopt

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/store"
)

// TestAnEarlierRunDoesNotBegin: a run of 8e3db45 opens its journal in this way before it locks
// a directory or reads anything, and ends where that fails.
func TestAnEarlierRunDoesNotBegin(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	refused := func() {
		t.Helper()
		f, err := durable.OpenFile(filepath.Join(l.dir, "journal.jsonl"), os.O_APPEND|os.O_CREATE|os.O_RDWR)
		if !errors.Is(err, durable.ErrNotRegular) || !strings.Contains(err.Error(), "journal.jsonl") {
			t.Errorf("it opens its journal: %v, %v", f, err)
		}
		text, err := os.ReadFile(filepath.Join(l.dir, "journal.jsonl", note))
		if err != nil || string(text) != noteText {
			t.Errorf("%q, %v", text, err)
		}
	}
	l.put("journal.jsonl", "{\"at\":\"2026-11-01T10:00:00Z\",\"kind\":\"removed\"}\n")
	l.adopt()
	refused()
	if n := l.count(`SELECT COUNT(*) FROM events`); n != 1 {
		t.Errorf("%d events", n)
	}
	l.adopt()
	refused()
	if l.log.Len() > 0 {
		t.Errorf("%s", &l.log)
	}
	if err := os.Remove(filepath.Join(l.dir, "journal.jsonl", note)); err != nil { // it was killed before that
		t.Fatal(err)
	}
	l.adopt()
	refused()
	l.unbar()
	l.adopt()
	refused()
}

// TestAnEarlierRunIsNotTakenOver: it knows nothing of the fleet's lock, and goes on with the
// files that would be taken away from it.
func TestAnEarlierRunIsNotTakenOver(t *testing.T) {
	t.Parallel()
	l := &lab{T: t, dir: t.TempDir()}
	if err := os.Chmod(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.put("accounts.json", "{}")
	unlock, err := flock.TryLock(filepath.Join(l.dir, ".notices-lock"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = open(t.Context(), l.dir, time.Second, slog.New(slog.DiscardHandler))
	if earlier, is := errors.AsType[*EarlierError](err); !is || earlier.Dir != l.dir || runtime.GOOS == "linux" && earlier.PID != os.Getpid() {
		t.Errorf("%v", err)
	}
	if l.is(true, "accounts.json"); store.Exists(l.dir) {
		t.Error("a store was made")
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	_, release, err := open(t.Context(), l.dir, time.Second, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	release()
	l.is(false, "accounts.json")
}
