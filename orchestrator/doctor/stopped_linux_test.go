package doctor

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

// TestAStoppedSessionIsFound: nothing was found of an agent whose session a signal had
// stopped, and no other one could start.
func TestAStoppedSessionIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	shim := exec.Command("cat")
	in, err := shim.StdinPipe()
	r.must(err)
	r.must(shim.Start())
	defer func() { r.must(errors.Join(in.Close(), shim.Process.Signal(syscall.SIGCONT), shim.Wait())) }()
	start, err := ptyrun.StartTimeOf(shim.Process.Pid)
	r.must(err)
	r.hold(filepath.Join(r.agent.Home, inbox.SessionLock))
	r.recordOf(hook.Process{PID: shim.Process.Pid, Start: start})
	r.hold(r.agent.Dir)
	if found := find(r.findings(), "lock-stuck"); found != nil {
		t.Errorf("of one that lives: %+v", found)
	}
	r.must(shim.Process.Signal(syscall.SIGSTOP))
	_, err = syscall.Wait4(shim.Process.Pid, nil, syscall.WUNTRACED, nil)
	r.must(err)
	if found := find(r.findings(), "lock-stuck"); found == nil || !strings.HasPrefix(found.Fix, "kill -CONT") {
		t.Errorf("of one that a signal has stopped: %+v", found)
	}
	defer testbed.Debugged(t, shim.Process.Pid)()
	if found := find(r.findings(), "lock-stuck"); found == nil || !strings.HasPrefix(found.Fix, "let the debugger") {
		t.Errorf("of one that a debugger has stopped: %+v", found)
	}
}
