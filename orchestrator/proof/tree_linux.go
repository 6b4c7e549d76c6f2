package proof

import "syscall"

// ownTree makes a check the leader of a process session, and has it killed when the
// scheduler is. What it has started is swept by the next run.
func ownTree() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
