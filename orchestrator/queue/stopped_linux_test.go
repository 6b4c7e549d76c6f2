package queue

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
)

// TestAStoppedSessionIsNamed: the next run could not recover what a stopped session of a
// killed one had left, and said "context deadline exceeded" of it.
func TestAStoppedSessionIsNamed(t *testing.T) {
	const holds = "TEST_HOLDS"
	if path := os.Getenv(holds); path != "" {
		if _, err := flock.TryLock(path); err != nil {
			t.Fatal(err)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	t.Parallel()
	a := newAgent(t, "a")
	start(t, a, inbox.Started)
	shim := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	shim.Env = append(os.Environ(), holds+"="+filepath.Join(filepath.Dir(a.Inbox), inbox.SessionLock))
	end, err := shim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := shim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(end.Close(), shim.Process.Signal(syscall.SIGCONT), shim.Wait()); err != nil {
			t.Error(err)
		}
	}()
	if line, err := bufio.NewReader(says).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	if err := shim.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(shim.Process.Pid, nil, syscall.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	refused := func(by, do string) {
		t.Helper()
		_, _, err = Recover(t.Context(), OfAgent(a, ""))
		busy, ok := errors.AsType[*BusyError](err)
		if !ok || !strings.Contains(err.Error(), fmt.Sprintf("(process %d), and %s has stopped it", shim.Process.Pid, by)) {
			t.Fatal(err)
		}
		if !strings.HasPrefix(busy.Hint(), do) {
			t.Errorf("to do: %s, want %s", busy.Hint(), do)
		}
	}
	refused("a signal", fmt.Sprintf("kill -CONT %d", shim.Process.Pid))
	defer testbed.Debugged(t, shim.Process.Pid)()
	refused("a debugger", "let the debugger go on")
}
