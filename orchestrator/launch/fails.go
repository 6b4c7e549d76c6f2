package launch

import (
	"context"
	"errors"

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
