//go:build !linux

package poll

import (
	"errors"
	"os/exec"
	"syscall"
)

// wait waits for cmd and kills what holds its output open in its process group.
// Other processes are left alone, because the group's number may have been reused.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err
}

// ownGroup makes a command the leader of a process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
