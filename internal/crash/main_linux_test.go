package crash

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/session/sessiontest"
)

var kills = flag.Int("kills", 0, "how many random kills (0: 120, or 10000 with -full)")

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

// program is the path of a release binary.
func program(t testing.TB, name string) string {
	t.Helper()
	return testbed.Program(t, name)
}

// built builds the program that answers a session's hooks as its shim does, once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "turn-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "turn")
	return path, testbed.Build(path, sessiontest.Turn)
})

func turn(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needPtrace skips where nothing can be stepped, and fails in CI.
func needPtrace(t *testing.T) {
	t.Helper()
	stepper.Need(t, stepper.Program{Path: program(t, "heartbeat-stop"), Args: []string{"--help"}})
}

// workDir is a fresh folder and its removal.
func workDir(t testing.TB) (dir string, remove func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "heartbeat-crash-")
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}
