//go:build !linux

package proof

import "syscall"

// ownTree makes a check the leader of a process session.
func ownTree() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
