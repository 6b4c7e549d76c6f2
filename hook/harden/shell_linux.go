package harden

import (
	"os"
	"syscall"
)

// FollowShell has this process end with the shell that runs it, where that leads the process
// session (setsid(2)), as the shell of a client's hook does: a client that ends the shell alone
// would leave a hook that hands over to nobody. The signal comes when the parent's thread ends
// that has started this process (prctl(2)), and a shell has one thread.
func FollowShell() {
	shell := os.Getppid()
	leader, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	if errno != 0 || int(leader) != shell {
		return // there is no shell, or it has ended
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	if os.Getppid() != shell {
		os.Exit(0) // it has ended meanwhile
	}
}
