package harden

import "syscall"

// redirect makes the descriptor to name what from names. Dup3, because
// linux/arm64 has no dup2.
func redirect(from, to int) error { return syscall.Dup3(from, to, 0) }
