package crash

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
)

var kills = flag.Int("kills", 0, "how many random kills (0: 120, or 10000 with -full)")

// TestMain is several programs, by the name it is called with.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == deskName {
		os.Exit(deskMain(os.Args[1:]))
	}
	os.Exit(testbed.Run(m))
}

// program is the path of a release binary.
func program(t testing.TB, name string) string {
	t.Helper()
	return testbed.Program(t, name)
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

// workDir is a fresh folder and its removal.
func workDir(t testing.TB) (dir string, remove func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "heartbeat-crash-")
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}
