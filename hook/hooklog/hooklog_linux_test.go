package hooklog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestAHookOnAFullDiskLeavesTheTime: nothing told its call from none, and the agent was held
// for hooks that do not run.
func TestAHookOnAFullDiskLeavesTheTime(t *testing.T) {
	if !testbed.Alone(t) {
		return
	}
	home := t.TempDir()
	path := filepath.Join(home, Name)
	long := time.Now().Add(-time.Hour)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	testbed.LimitFiles(t, 0)
	Line(home, "cannot work")
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("%+v, %v", info, err)
	}
}
