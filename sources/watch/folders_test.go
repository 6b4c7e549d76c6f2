package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFoldersBeginsWithEachFolder: what was written before a folder was
// watched would be noticed by nobody.
func TestFoldersBeginsWithEachFolder(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	changed := make(chan string, 16)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- Folders(ctx, []string{one, two}, func(path string) { changed <- path }) }()
	next := func() string {
		select {
		case path := <-changed:
			return path
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was reported")
			return ""
		}
	}
	if a, b := next(), next(); a != one || b != two {
		t.Errorf("reported %q and %q first", a, b)
	}
	file := filepath.Join(two, "inbox.jsonl")
	if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != file {
		t.Errorf("reported %q, want %q", got, file)
	}
	cancel(errors.New("enough"))
	if err := <-done; err != nil {
		t.Error(err)
	}
}
