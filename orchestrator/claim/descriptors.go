package claim

import (
	"fmt"
	"syscall"
)

// Files that are open at the same time: a directory for each agent; for each
// session its pipes and a queue that is being read; the rest of a process.
const (
	openPerSession = 8
	openBeside     = 256
)

// DescriptorsError means that a process may not open as many files as a fleet
// needs.
type DescriptorsError struct{ Need, Have uint64 }

// Error says how many.
func (e *DescriptorsError) Error() string {
	return fmt.Sprintf("cannot run the fleet: it takes %d open files, the limit is %d", e.Need, e.Have)
}

// Hint says what to do.
func (e *DescriptorsError) Hint() string {
	return fmt.Sprintf("raise the limit: `ulimit -Hn %d` (LimitNOFILE=%d in a systemd unit), or run fewer agents", e.Need, e.Need)
}

// EnoughDescriptors returns a *DescriptorsError if the limit of open files is too
// low for this many agents and sessions at once. The soft limit was raised to the
// hard one when the process started (package os).
func EnoughDescriptors(agents, sessions int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil // opening a directory will fail then
	}
	need := uint64(agents + openPerSession*min(sessions, agents) + openBeside)
	if have := uint64(limit.Cur); have < need {
		return &DescriptorsError{Need: need, Have: have}
	}
	return nil
}
