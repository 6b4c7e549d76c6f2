package crash

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"heartbeat/internal/crash/stepper"
)

var (
	full  = flag.Bool("full", false, "every kill point and cut point instead of a slice")
	kills = flag.Int("kills", 0, "how many random kills (0: 400, or 10000 with -full)")
)

// binaries is where the release binaries are built, each once.
var binaries struct {
	sync.Mutex
	dir   string
	built map[string]error
}

func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	os.RemoveAll(binaries.dir)
	os.Exit(status)
}

// program is the path of a release binary.
func program(t testing.TB, name string) string {
	t.Helper()
	b := &binaries
	b.Lock()
	defer b.Unlock()
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "heartbeat-crash-")
		if err != nil {
			t.Fatal(err)
		}
		b.dir, b.built = dir, map[string]error{}
	}
	path := filepath.Join(b.dir, name)
	if _, done := b.built[name]; !done {
		out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "heartbeat/cmd/"+name).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		b.built[name] = err
	}
	if err := b.built[name]; err != nil {
		t.Fatal(err)
	}
	return path
}

// needPtrace skips where nothing can be stepped, and fails in CI.
func needPtrace(t *testing.T) {
	t.Helper()
	_, err := stepper.Run(stepper.Program{Path: program(t, "heartbeat-stop"), Args: []string{"--help"}}, 0)
	switch {
	case err == nil:
	case errors.Is(err, stepper.ErrUnavailable) && os.Getenv("CI") != "true":
		t.Skip("no kill points here: ", err)
	default:
		t.Fatal(err)
	}
}

// workDir is a fresh folder and its removal: in memory where there is a place
// for that, because a kill says nothing about the disk and syncing is what
// takes time.
func workDir(t testing.TB) (dir string, remove func()) {
	t.Helper()
	parent := os.Getenv("TMPDIR")
	if parent == "" {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "heartbeat-crash-")
	if err != nil {
		dir, err = os.MkdirTemp("", "heartbeat-crash-")
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}
