package testbed

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWhatAKilledTestBinaryLeft is removed by the next one; what is in use, and
// what is somebody else's, stays.
func TestWhatAKilledTestBinaryLeft(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	used, held, err := folder(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	left, killed, err := folder(parent)
	if err != nil {
		t.Fatal(err)
	}
	killed.Close() // as the kernel does
	other := filepath.Join(parent, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(parent)
	for path, stays := range map[string]bool{used: true, left: false, other: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v, want that it stays: %t", path, err, stays)
		}
	}
}
