package config

import (
	"errors"
	"path/filepath"

	"heartbeat/hook/inbox"
	"heartbeat/hook/owned"
)

// ExposedError means that somebody else can change what decides what an agent does: a
// prompt in its queue, a hook or a rule in its settings, a program in its directory.
type ExposedError struct {
	cause error
	fix   string
}

// Error says which path, and who can change it.
func (e *ExposedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *ExposedError) Unwrap() error { return e.cause }

// Hint is what to type.
func (e *ExposedError) Hint() string { return e.fix }

// Exposed returns a *ExposedError unless only this user and root can change the agent's
// directory, what leads there, its queue and its settings files. Whoever begins to use
// the directory asks: it is refused as the fleet's file is.
func (a *Agent) Exposed() error {
	queue := append(inbox.FlightFiles(a.Inbox), a.Inbox, inbox.Beside(a.Inbox, inbox.UrgentFile), inbox.DeadLetterFile(a.Inbox))
	return exposed(a.Dir, append([]string{a.Home, filepath.Dir(a.Inbox), a.Later()}, queue...)...)
}

// Later is the folder of the agent's prompts for a later time.
func (a *Agent) Later() string { return filepath.Join(a.Home, "later") }

func exposed(dir string, below ...string) error {
	err := owned.CheckTree(dir, append(below,
		filepath.Join(dir, ".claude"), filepath.Join(dir, ".claude", "settings.json"), filepath.Join(dir, ".claude", "settings.local.json"))...)
	if _, is := errors.AsType[*owned.Error](err); !is {
		return nil // who uses the path finds what else is wrong with it
	}
	return &ExposedError{err, mended(err, dir)}
}
