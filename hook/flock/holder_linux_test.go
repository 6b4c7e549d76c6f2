package flock

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if pid := Holder(dir); pid != 0 {
		t.Errorf("nobody's lock is held by %d", pid)
	}
	unlock, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if pid := Holder(dir); pid != os.Getpid() {
		t.Errorf("held by %d, want this process, %d", pid, os.Getpid())
	}
	if pid := Holder(filepath.Join(dir, "none")); pid != 0 {
		t.Errorf("of what is not there: %d", pid)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if pid := Holder(dir); pid != 0 {
		t.Errorf("after the release: %d", pid)
	}
}
