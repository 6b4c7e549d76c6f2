package session

import (
	"errors"
	"slices"
	"syscall"
)

// scarce are the errors of a machine that has run out of something.
var scarce = []error{
	syscall.ENOSPC, syscall.EDQUOT, // disk
	syscall.EMFILE, syscall.ENFILE, // descriptors
	syscall.EAGAIN, syscall.ENOMEM, // processes (fork(2)), memory
}

// DiskFull reports whether something failed because a disk, or what the user may use
// of it, is full.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// NoRoom reports whether something failed because the machine had no room for it.
// That passes, and changing the agent's definition would not help.
func NoRoom(err error) bool {
	return slices.ContainsFunc(scarce, func(e error) bool { return errors.Is(err, e) })
}
