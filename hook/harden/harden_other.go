//go:build !linux

package harden

import "syscall"

// redirect makes the descriptor to name what from names.
func redirect(from, to int) error { return syscall.Dup2(from, to) }
