//go:build !linux

package probe

import "syscall"

// networks: no other system has them.
func networks() []*syscall.SysProcAttr { return nil }

func raiseLoopback() error { return nil }
