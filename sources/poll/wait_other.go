//go:build !linux

package poll

import (
	"errors"
	"os/exec"
	"syscall"
)

// wait waits for cmd and ends what holds its output open in its process
// group; what does not is left, as the group's number may be taken again.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err
}

// ownGroup makes a command the first of a process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
