package inbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// blow makes a file one of 4 TB, which costs nothing.
func blow(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4 << 40); err != nil {
		t.Skipf("this file system has no such files: %v", err)
	}
}

// Dead letters that an agent had blown up to 4 TB held status and the metrics
// for good.
func TestDeadLettersAreCountedInSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	opened, err := Open(Place{Inbox: path})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	q := unlocked(opened)
	file := func(id string) {
		t.Helper()
		if err := q.FileTooLarge(Letter{ID: id, Source: "send", Prompt: "too large"}); err != nil {
			t.Fatal(err)
		}
	}
	var c DeadCount
	count := func(want int, more bool) {
		t.Helper()
		if err := q.CountDead(&c); err != nil || c.Entries != want || c.More != more {
			t.Errorf("%d dead letters, more %v, %v; want %d, %v", c.Entries, c.More, err, want, more)
		}
	}
	count(0, false)
	file("a")
	file("b")
	count(2, false)
	at, oldest := c.mark.at, c.Oldest
	file("c")
	count(3, false)
	if oldest.IsZero() || !c.Oldest.Equal(oldest) {
		t.Errorf("the oldest is of %s, and of %s with another one behind", oldest, c.Oldest)
	}
	if c.mark.at <= at {
		t.Error("it counts from the beginning each time")
	}
	blow(t, DeadLetterFile(path))
	count(3, true)
	count(3, true)
	n := 0
	for _, err := range q.DeadLetters() {
		if n++; err != nil && (n != 4 || !errors.Is(err, ErrTooMuch)) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if err := os.Remove(DeadLetterFile(path)); err != nil {
		t.Fatal(err)
	}
	if count(0, false); !c.Oldest.IsZero() {
		t.Errorf("the oldest of none is of %s", c.Oldest)
	}
	file("d")
	if count(1, false); !c.Oldest.After(oldest) {
		t.Errorf("the oldest of the new ones is of %s", c.Oldest)
	}
}

// Each file of a queue may be one of 4 TB: what reads it ends, with a result
// or an error, and when the context of who asks ends.
func TestFilesOfAnySize(t *testing.T) {
	t.Parallel()
	for _, name := range testbed.SampleOf(t, []string{
		"inbox.jsonl", CursorFile, metaFile, FlightFile, respondedFile, DeadFile, idsFile, outboxFile, olderOutbox, ".inbox.jsonl.kept",
		UrgentFile, UrgentCursor, urgentMeta, UrgentFlight, "." + UrgentFile + ".kept",
	}, 2) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			opened, err := Open(Place{Inbox: filepath.Join(dir, "inbox.jsonl")})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			q := unlocked(opened)
			if _, err := q.Append(t.Context(), Letter{ID: "first", Prompt: "first", Idempotent: true}); err != nil {
				t.Fatal(err)
			}
			blow(t, filepath.Join(dir, name))
			_, _ = q.Append(t.Context(), Letter{ID: "second", Prompt: "second", Idempotent: true, Urgent: true})
			_, _ = q.Depth(0)
			_, _ = q.Peek()
			_, _ = q.Holds("missing")
			_, _ = q.List(1 << 30)
			_, _ = q.FindDelivery("missing", nil)
			_, _ = q.RetryDead("missing")
			_, _ = q.PurgeDead(func(DeadEntry) bool { return false })
			_, _ = q.LastReply()
			for range 2 {
				_, _ = q.Next()
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
			defer cancel()
			if d, err := q.AwaitDelivery(ctx, "missing", nil); d != nil || err == nil {
				t.Errorf("%+v, %v", d, err)
			}
			q.Within(ctx)
			if _, err := q.Depth(0); name == "inbox.jsonl" && (err == nil || err.Error() == "") {
				t.Error("it reads on when nobody asks any more")
			}
		})
	}
}

// TestALetterWhoseIDIsTakenIsFiledWhole: twice is once, and a person can queue it again.
func TestALetterWhoseIDIsTakenIsFiledWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "x", Prompt: "one"})
	for range 2 {
		if err := r.FileTaken(Letter{ID: "x", Source: "send", Prompt: "two", Checked: true}); err != nil {
			t.Fatal(err)
		}
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != IDTaken || !dead[0].Retryable() {
		t.Fatalf("%+v", dead)
	}
	if n, err := r.RetryDead("x"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r.offer()
	r.ack()
	if e, err := r.Next(); err != nil || e.Prompt != "two" || e.ID != "x" || !e.Checked {
		t.Errorf("%+v, %v", e, err)
	}
}
