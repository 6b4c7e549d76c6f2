package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/internal/testbed"
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
		case <-time.After(testbed.Patience):
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

// TestAFolderThatIsMadeAnewIsWatched: after a directory was removed and cloned
// again nothing told of what was queued in it.
func TestAFolderThatIsMadeAnewIsWatched(t *testing.T) {
	t.Parallel()
	for _, away := range []struct {
		name string
		with func(path string) error
	}{
		{"removed", os.RemoveAll},
		{"moved", func(path string) error { return os.Rename(path, path+".old") }},
	} {
		t.Run(away.name, func(t *testing.T) {
			t.Parallel()
			folder, late := filepath.Join(t.TempDir(), "folder"), filepath.Join(t.TempDir(), "late")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			changed := make(chan string, 64)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- watchFolders(ctx, []string{folder, late}, 20*time.Millisecond, func(path string) { changed <- path })
			}()
			wait := func(want string) {
				t.Helper()
				for {
					select {
					case path := <-changed:
						if path == want {
							return
						}
					case <-time.After(testbed.Patience):
						t.Fatalf("%s was not reported", want)
					}
				}
			}
			wait(late) // it is not there yet
			if err := away.with(folder); err != nil {
				t.Fatal(err)
			}
			wait(folder)
			for _, f := range []string{folder, late} {
				if err := os.Mkdir(f, 0o700); err != nil {
					t.Fatal(err)
				}
				wait(f)
				file := filepath.Join(f, "inbox.jsonl")
				if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				wait(file)
			}
			cancel(errors.New("enough"))
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
