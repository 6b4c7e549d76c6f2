package orchestrator

import (
	"context"
	"errors"
	"os"

	"heartbeat/orchestrator/session"
)

// ErrNeedsPerson means that only a person can help: an agent whose session
// cannot be prepared for it is held at once.
var ErrNeedsPerson = errors.New("a person is needed")

// ErrPasses means that something failed which nobody need mend: a program that
// the system has ended, say.
var ErrPasses = errors.New("it may pass by itself")

// Passes reports whether something failed for want of room or time on this
// machine. It is tried again for as long as it takes, and holds nobody.
func Passes(err error) bool {
	return session.NoRoom(err) || errors.Is(err, ErrPasses) || errors.Is(err, context.DeadlineExceeded)
}

// withHint is an error with what to do, where it says so.
func withHint(err error) string {
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return err.Error() + "; " + h.Hint()
	}
	return err.Error()
}

// ownImage is this program's own file on Linux, also when it was replaced or
// removed (proc(5)).
const ownImage = "/proc/self/exe"

// Self is a path by which the running program can be started, and read, as
// it is: where an upgrade has put another one, or nothing, in the place of its
// file, that is still this one.
func Self() string {
	path, err := os.Executable()
	own, ownErr := os.Stat(ownImage)
	if ownErr != nil {
		return path // not Linux
	}
	if named, statErr := os.Stat(path); err == nil && statErr == nil && os.SameFile(named, own) {
		return path
	}
	return ownImage
}
