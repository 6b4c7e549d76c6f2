package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tests of Dir and RuntimeDir set the environment, so they cannot run in
// parallel.

func TestDir(t *testing.T) {
	home := t.TempDir()
	tests := []struct {
		name            string
		base, xdg, want string
	}{
		{"home", "", "", filepath.Join(home, ".local/state/heartbeat/fleet")},
		{"xdg", "", filepath.Join(home, "xdg"), filepath.Join(home, "xdg/heartbeat/fleet")},
		{"relative xdg is ignored", "", "xdg", filepath.Join(home, ".local/state/heartbeat/fleet")},
		{"replaced base", filepath.Join(home, "base"), filepath.Join(home, "xdg"), filepath.Join(home, "base/fleet")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HOME", home)
			t.Setenv("XDG_STATE_HOME", tt.xdg)
			t.Setenv(EnvBase, tt.base)
			got, err := Dir("fleet")
			if err != nil || got != tt.want {
				t.Fatalf("Dir = %q, %v; want %q", got, err, tt.want)
			}
			if mode := modeOf(t, got); mode != 0o700 {
				t.Errorf("mode %o, want 700", mode)
			}
		})
	}
}

func TestDirWithoutHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_STATE_HOME", EnvBase} {
		t.Setenv(name, "")
	}
	if dir, err := Dir("fleet"); err == nil {
		t.Fatalf("Dir = %q without a home, want an error", dir)
	}
}

func TestDirIsMadePrivate(t *testing.T) {
	base := t.TempDir()
	t.Setenv(EnvBase, base)
	if err := os.Mkdir(filepath.Join(base, "fleet"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := Dir("fleet")
	if err != nil {
		t.Fatal(err)
	}
	if mode := modeOf(t, dir); mode != 0o700 {
		t.Errorf("mode %o, want 700", mode)
	}
}

// A link in a folder that others can write could lead anywhere.
func TestDirRefusesLink(t *testing.T) {
	base := t.TempDir()
	t.Setenv(EnvBase, base)
	if err := os.Symlink(t.TempDir(), filepath.Join(base, "fleet")); err != nil {
		t.Fatal(err)
	}
	if dir, err := Dir("fleet"); err == nil {
		t.Fatalf("Dir = %q through a link, want an error", dir)
	}
}

func TestRuntimeDir(t *testing.T) {
	short, err := os.MkdirTemp("/tmp", "hb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	long := filepath.Join(short, strings.Repeat("x", 90))
	t.Setenv("TMPDIR", short)
	t.Setenv("HOME", short)
	t.Setenv("XDG_STATE_HOME", "")
	tests := []struct {
		name              string
		base, xdg, prefix string
	}{
		{"xdg", "", filepath.Join(short, "run"), filepath.Join(short, "run/heartbeat/fleet")},
		{"beside the state", filepath.Join(short, "base"), filepath.Join(short, "run"), filepath.Join(short, "base/fleet/run")},
		{"too long for a socket", long, "", filepath.Join(short, "heartbeat-")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(EnvBase, tt.base)
			t.Setenv("XDG_RUNTIME_DIR", tt.xdg)
			got, err := RuntimeDir("fleet")
			if err != nil || !strings.HasPrefix(got, tt.prefix) {
				t.Fatalf("RuntimeDir = %q, %v; want %q…", got, err, tt.prefix)
			}
			if len(got) > maxSocketDir {
				t.Errorf("%d bytes, over %d", len(got), maxSocketDir)
			}
			if mode := modeOf(t, got); mode != 0o700 {
				t.Errorf("mode %o, want 700", mode)
			}
			again, err := RuntimeDir("fleet")
			if err != nil || again != got {
				t.Errorf("the second time %q, %v; want %q", again, err, got)
			}
		})
	}
}

// TestAFleetWithALongTemporaryFolderHasSockets: what was too long beside the
// state was too long there, too, and nothing could reach the run.
func TestAFleetWithALongTemporaryFolderHasSockets(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 90))
	t.Setenv(EnvBase, long)
	t.Setenv("TMPDIR", long)
	got, err := RuntimeDir("fleet")
	if err != nil || len(got) > maxSocketDir || !strings.HasPrefix(got, "/tmp/heartbeat-") {
		t.Fatalf("RuntimeDir = %q, %v", got, err)
	}
	t.Cleanup(func() { os.RemoveAll(got) })
	if mode := modeOf(t, got); mode != 0o700 {
		t.Errorf("mode %o", mode)
	}
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	type fires struct {
		Last map[string]int `json:"last"`
	}
	path := filepath.Join(t.TempDir(), "new", "fires.json")
	var got fires
	if err := Load(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Load of nothing: %v, want fs.ErrNotExist", err)
	}
	for n := range 3 {
		if err := Save(path, fires{Last: map[string]int{"a": n}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Load(path, &got); err != nil || got.Last["a"] != 2 {
		t.Fatalf("Load = %v, %v; want the last value saved", got, err)
	}
	if mode := modeOf(t, path); mode != 0o600 {
		t.Errorf("mode %o, want 600", mode)
	}
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(names) != 1 {
		t.Errorf("files left: %v, %v; want one", names, err)
	}
}

func TestLoadNamesABrokenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(path, []byte(`{"last":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Load(path, new(any)); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("Load = %v, want an error that names the file", err)
	}
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// TestALargeFileIsLoadedAgain: what a watch of 70,000 files remembers was
// saved and could not be loaded, so that its triggers ran no more.
func TestALargeFileIsLoadedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.json")
	long := strings.Repeat("x", 20<<20)
	if err := Save(path, long); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := Load(path, &got); err != nil || got != long {
		t.Errorf("loaded %d bytes, %v", len(got), err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Load(path, &got); !errors.Is(err, ErrDamaged) {
		t.Errorf("an empty file: %v", err)
	}
}

// TestSocketsAreWhereNobodySwapsThem: another user could put a directory of
// theirs in the place of one in a folder that they can write.
func TestSocketsAreWhereNobodySwapsThem(t *testing.T) {
	base, open := t.TempDir(), t.TempDir()
	t.Setenv(EnvBase, "")
	t.Setenv("XDG_STATE_HOME", base)
	t.Setenv("XDG_RUNTIME_DIR", open)
	safe := filepath.Join(open, "heartbeat", "fleet")
	if dir, err := RuntimeDir("fleet"); dir != safe || err != nil {
		t.Fatalf("%q, %v, want %q", dir, err, safe)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, err := RuntimeDir("fleet"); dir == safe || err != nil {
		t.Errorf("%q, %v", dir, err)
	}
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil { // as /tmp is
		t.Fatal(err)
	}
	if dir, err := RuntimeDir("fleet"); dir != safe || err != nil {
		t.Errorf("%q, %v, want %q", dir, err, safe)
	}
}
