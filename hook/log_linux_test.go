package hook

import (
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAHookOnAFullDiskLeavesTheTime: nothing told its call from none, and the agent was held
// for hooks that do not run.
func TestAHookOnAFullDiskLeavesTheTime(t *testing.T) {
	if os.Getenv("HOOK_ALONE") == "" { // the limit is the whole process's
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "HOOK_ALONE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	home := t.TempDir()
	path := filepath.Join(home, logName)
	long := time.Now().Add(-time.Hour)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 0, Max: math.MaxUint64}); err != nil {
		t.Fatal(err)
	}
	logLine(home, "cannot work")
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("%+v, %v", info, err)
	}
}
