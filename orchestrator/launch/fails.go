package launch

import (
	"context"
	"errors"
	"syscall"

	"heartbeat/orchestrator/session"
)

// ErrNeedsPerson means that only a person can help: an agent whose session cannot
// be prepared because of it is held at once.
var ErrNeedsPerson = errors.New("a person is needed")

// ErrPasses means a failure that nobody has to repair: for example a program that
// the system has ended.
var ErrPasses = errors.New("it may pass by itself")

// DiskFull reports whether something failed because a disk, or what the user may use
// of it, is full.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Passes reports whether something failed because this machine had no room or time.
// It is retried for as long as it takes, and holds no agent.
func Passes(err error) bool {
	return session.NoRoom(err) || errors.Is(err, ErrPasses) || errors.Is(err, context.DeadlineExceeded)
}
