package ptyrun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestAnOrphanOfAnotherChildIsNotEnded: a check's daemon was ended with a terminal that
// the same process had.
func TestAnOrphanOfAnotherChildIsNotEnded(t *testing.T) {
	t.Parallel()
	if !testbed.Alone(t) {
		return
	}
	c, err := Start(t.Context(), Config{Argv: sh("exec sleep 60"), Grace: time.Second}) // a shell that waits would leave a process
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	other := exec.Command("sh", "-c", `(env -i PATH="$PATH" setsid sh -c 'echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 60' "$0" &); read x`, file)
	stdin, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	orphan := process{}
	within(t, "the orphan is adopted", func() bool {
		text, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil {
			orphan, err = readProcess(pid)
		}
		return err == nil && orphan.ppid == os.Getpid()
	})
	if exit := c.End(t.Context()); len(exit.Swept) > 0 {
		t.Errorf("swept: %v", exit.Swept)
	}
	if now, err := readProcess(orphan.pid); err != nil || now.zombie || now.start != orphan.start {
		t.Errorf("the orphan of another child was ended: %+v, %v", now, err)
	}
	_ = signal(orphan, syscall.SIGKILL)
	_ = stdin.Close()
	_ = other.Wait() // its read has failed
}
