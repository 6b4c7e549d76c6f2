package workspace

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/settings"
)

func TestFindHook(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	place := func(t *testing.T, names ...string) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), names[0])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, n := range names[1:] {
			if err := os.WriteFile(filepath.Join(dir, n), []byte("program "+n), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	t.Run("itself", func(t *testing.T) {
		t.Parallel()
		dir := place(t, "bin", "heartbeat")
		expectHook(t, state, filepath.Join(dir, "heartbeat"), filepath.Join(dir, "heartbeat"))
	})
	t.Run("the small one beside it", func(t *testing.T) {
		t.Parallel()
		dir := place(t, "bin", "heartbeat", "heartbeat-stop")
		expectHook(t, state, filepath.Join(dir, "heartbeat"), filepath.Join(dir, "heartbeat-stop"))
	})
	t.Run("beside it, not executable", func(t *testing.T) {
		t.Parallel()
		dir := place(t, "bin", "heartbeat", "heartbeat-stop")
		if err := os.Chmod(filepath.Join(dir, "heartbeat-stop"), 0o644); err != nil {
			t.Fatal(err)
		}
		expectHook(t, state, filepath.Join(dir, "heartbeat"), filepath.Join(dir, "heartbeat"))
	})
	t.Run("quoted", func(t *testing.T) {
		t.Parallel()
		dir := place(t, "my programs", "heartbeat")
		expectHook(t, state, filepath.Join(dir, "heartbeat"), filepath.Join(dir, "heartbeat"))
	})
	t.Run("upgraded while it ran", func(t *testing.T) {
		t.Parallel()
		dir := place(t, "bin", "heartbeat")
		expectHook(t, state, filepath.Join(dir, "heartbeat")+" (deleted)", filepath.Join(dir, "heartbeat"))
	})
}

func expectHook(t *testing.T, state, self, binary string) {
	t.Helper()
	h, err := FindHook(self, state)
	if want := settings.Command(binary); err != nil || h.Command != want {
		t.Errorf("got %+v, %v; want %q", h, err, want)
	}
	if !settings.Ours(h.Command) {
		t.Errorf("%q is not known as ours", h.Command)
	}
}

// `go run` removes its build folder when it ends: hooks must not name it.
func TestFindHookOfGoRun(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	build := filepath.Join(t.TempDir(), "go-build123", "b001", "exe")
	if err := os.MkdirAll(build, 0o755); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(build, "heartbeat")
	for i := range keptCopies + 2 {
		program := bytes.Repeat([]byte{byte(i)}, 100)
		if err := os.WriteFile(self, program, 0o755); err != nil {
			t.Fatal(err)
		}
		h, err := FindHook(self, state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(h.binary); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("finding made the copy: %v", err)
		}
		for range 2 {
			if err := h.Install(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(h.binary)
		if err != nil || !bytes.Equal(got, program) || !strings.HasPrefix(h.binary, state) {
			t.Fatalf("the copy %q: %v", h.binary, err)
		}
		if !executable(h.binary) || !settings.Ours(h.Command) {
			t.Errorf("%q is not executable, or not known as ours", h.Command)
		}
		// Copies of one moment have no order: say when this one was used.
		at := time.Now().Add(time.Duration(i-10) * time.Minute)
		if err := os.Chtimes(h.binary, at, at); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadDir(filepath.Join(state, "bin"))
	if err != nil || len(kept) != keptCopies {
		t.Errorf("%d copies are kept, %v; want %d", len(kept), err, keptCopies)
	}
}
