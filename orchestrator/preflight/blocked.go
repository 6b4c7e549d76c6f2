package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/settings"
)

// BlockedError means that no session of an agent can work, for certain, until
// somebody has changed what it names. Meanwhile there is no need to start one:
// asking again is enough.
type BlockedError struct {
	Agent string
	// Obstacles are at least one, the clearest first.
	Obstacles []Obstacle
	ours      string
	cause     error
}

// Blocked returns a *BlockedError where there is an obstacle for the agent's
// client, or nil.
func (c Client) Blocked(found []Obstacle) error {
	if len(found) == 0 {
		return nil
	}
	return &BlockedError{Agent: c.Agent, Obstacles: found, ours: c.Ours}
}

// Variables returns the environment of an agent's sessions, and of its triggers' commands.
// If its env-file cannot be read, or somebody else can change what they run, the error is a
// *BlockedError that reveals no value.
func Variables(a *config.Agent, base []string) ([]string, error) {
	if e, ok := errors.AsType[*config.ExposedError](a.Exposed()); ok {
		return nil, &BlockedError{Agent: a.Name, Obstacles: []Obstacle{exposed(e)}, cause: e}
	}
	env, err := a.Environ(base)
	if err != nil {
		return nil, &BlockedError{Agent: a.Name, Obstacles: []Obstacle{envFile(a.EnvFile, err)}, cause: err}
	}
	return env, nil
}

// Error says what is in the way. Whose agent it is, or which trigger, its reader
// knows.
func (e *BlockedError) Error() string {
	text := e.Obstacles[0].Seen
	if n := len(e.Obstacles) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more: %s doctor %s)", n, cmp.Or(e.ours, "heartbeat"), e.Agent)
	}
	return text
}

// Hint says what to do.
func (e *BlockedError) Hint() string { return e.Obstacles[0].Fix }

// Unwrap returns why a file could not be read, or nil.
func (e *BlockedError) Unwrap() error { return e.cause }

// FreeRoom is what to do where the disk of one of some folders is full.
func FreeRoom(folders ...string) string {
	command := []string{"df", "-h"}
	for _, f := range folders {
		command = append(command, settings.Quote(f))
	}
	return "free room where Avail is 0: " + strings.Join(command, " ")
}
