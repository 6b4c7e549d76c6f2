package poll

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// wait waits for cmd and kills what it left in its process group, which would hold
// the output open or stay for ever. Until the command itself is reaped, no other
// group can have its number.
func wait(cmd *exec.Cmd) error {
	pid := cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return cmd.Wait()
}

// ownGroup makes a command the leader of a process group, and has it killed when we
// are killed, because nobody would read its output.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
