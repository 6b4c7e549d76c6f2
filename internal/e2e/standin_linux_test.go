package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/simulate"
)

// standInName is the name by which the test binary is the stand-in.
const standInName = "simulate"

func standInMain(args []string) int {
	return simulate.Main(args, os.Stdin, os.Stdout, os.Stderr)
}

// standIn is this program under the stand-in's name.
func standIn(t *testing.T) client {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), standInName)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return client{name: "stand-in", path: path}
}
