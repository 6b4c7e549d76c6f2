package launch

import (
	"context"
	"errors"
	"os"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/session"
)

// ErrNeedsPerson means that only a person can help: an agent whose session cannot
// be prepared because of it is held at once.
var ErrNeedsPerson = errors.New("a person is needed")

// ErrPasses means a failure that nobody has to repair: for example a program that
// the system has ended.
var ErrPasses = errors.New("it may pass by itself")

// Remedy is what a person does about how a session of an agent has ended, where that depends
// on the agent's disk or login; or "".
func Remedy(a *config.Agent, stateDir string, o session.Outcome) string {
	switch {
	case o.DiskFull:
		return preflight.FreeRoom(a.Dir, stateDir)
	case o.Why == hook.EndAPIFailure && o.Detail == client.Claude.Hooks.Refused:
		return preflight.ClientOf(a, os.Environ()).Relogin()
	}
	return ""
}

// Passes reports whether something failed because this machine had no room or time.
// It is retried for as long as it takes, and holds no agent.
func Passes(err error) bool {
	return session.NoRoom(err) || errors.Is(err, ErrPasses) || errors.Is(err, context.DeadlineExceeded)
}
