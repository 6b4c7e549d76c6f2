package poll

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestACommandDoesNotOutliveUs: each kill -9 of a scheduler left a command that
// hung behind, and the next run started another one.
func TestACommandDoesNotOutliveUs(t *testing.T) {
	t.Parallel()
	const dirVariable = "TEST_POLL_DIR"
	if dir := os.Getenv(dirVariable); dir != "" { // the one that is killed
		_, _ = Exec(t.Context(), Command{
			Argv: []string{"/bin/sh", "-c", "trap '' TERM HUP INT; echo $$ > pid.tmp; mv pid.tmp pid; while :; do sleep 0.1; done"}, Dir: dir,
		})
		return
	}
	dir := t.TempDir()
	us := exec.Command(os.Args[0], "-test.run=^TestACommandDoesNotOutliveUs$")
	us.Env = append(os.Environ(), dirVariable+"="+dir)
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	pid := filepath.Join(dir, "pid")
	for deadline := time.Now().Add(testbed.Patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(pid); err == nil {
			break
		} else if time.Now().After(deadline) {
			_ = us.Process.Kill()
			t.Fatal(err)
		}
	}
	if err := us.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = us.Wait() // it was killed
	wantGone(t, pid)
}
