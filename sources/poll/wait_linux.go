package poll

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// wait waits for cmd and ends what it left in its process group, which would
// hold the output open or stay for ever. As long as the command itself is not
// reaped its group cannot be anybody else's.
func wait(cmd *exec.Cmd) error {
	pid := cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return cmd.Wait()
}

// ownGroup makes a command the first of a process group, and ends it when we
// are killed: nobody would take what it prints.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
