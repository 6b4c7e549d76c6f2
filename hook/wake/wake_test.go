package wake

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/internal/testbed"
)

// TestWatchPollsWithoutInotify stands in for a system whose inotify instances are
// used up.
func TestWatchPollsWithoutInotify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "inbox"), filepath.Join(dir, "urgent")}
	gone := make(chan struct{})
	w := &Watch{paths: paths, seen: make([]durable.Stamp, len(paths)), gone: gone, stop: func() {}}
	w.differs()
	if !w.Next(time.Now().Add(time.Hour)) {
		t.Fatal("no first look")
	}
	timer := time.AfterFunc(50*time.Millisecond, func() { _ = os.WriteFile(paths[0], []byte("x\n"), 0o600) })
	defer timer.Stop()
	begin := time.Now()
	w.last = begin.Add(time.Hour) // no glance comes first
	if !w.Next(begin.Add(2*time.Hour)) || time.Since(begin) > testbed.Patience {
		t.Errorf("seen after %s", time.Since(begin))
	}
	w.last = begin.Add(time.Hour)
	if !w.Next(time.Now().Add(20*time.Millisecond)) || time.Since(begin) > testbed.Patience {
		t.Errorf("the deadline came after %s", time.Since(begin))
	}
	close(gone)
	if w.Next(time.Now().Add(time.Hour)) {
		t.Error("the end of its hook does not end it")
	}
}

// TestAFileThatChangedTwiceInOneTickWakesTheHook where there are no notifications.
// What was written right behind the change that woke it was not seen.
func TestAFileThatChangedTwiceInOneTickWakesTheHook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testAFileThatChanged) // where time stands still
}

func testAFileThatChanged(t *testing.T) {
	dir := t.TempDir()
	inbox := filepath.Join(dir, "inbox.jsonl")
	w := &Watch{paths: []string{inbox, filepath.Join(dir, "urgent")}, seen: make([]durable.Stamp, 2)}
	put := func(text string, at time.Time) {
		if err := errors.Join(os.WriteFile(inbox, []byte(text), 0o600), os.Chtimes(inbox, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	now, long := time.Now(), time.Now().Add(-time.Hour)
	for _, change := range []struct {
		text string
		at   time.Time
	}{{"one\n", now}, {"two\n", now}, {"two\n", long}} {
		if put(change.text, change.at); !w.differs() {
			t.Errorf("%q at %v: not seen", change.text, change.at)
		}
	}
	if w.differs() {
		t.Error("a change is seen that there was not")
	}
}
