package preflight

import (
	"fmt"

	"heartbeat/config"
)

// BlockedError means that no session of an agent can do its work, for certain,
// until somebody has changed what it names. Nothing need be tried meanwhile: it is
// enough to ask again.
type BlockedError struct {
	Agent string
	// Obstacles are at least one, the clearest first.
	Obstacles []Obstacle
	cause     error
}

// Blocked returns a *BlockedError where there is an obstacle, or nil.
func Blocked(agent string, found []Obstacle) error {
	if len(found) == 0 {
		return nil
	}
	return &BlockedError{Agent: agent, Obstacles: found}
}

// Variables returns the environment of an agent's sessions. Without its env-file
// the error is a *BlockedError that tells no value.
func Variables(a *config.Agent, base []string) ([]string, error) {
	env, err := a.Environ(base)
	if err != nil {
		return nil, &BlockedError{a.Name, []Obstacle{envFile(a.EnvFile, err)}, err}
	}
	return env, nil
}

// Error says what is in the way.
func (e *BlockedError) Error() string {
	text := fmt.Sprintf("cannot feed agent %q: %s", e.Agent, e.Obstacles[0].Seen)
	if n := len(e.Obstacles) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more: heartbeat doctor %s)", n, e.Agent)
	}
	return text
}

// Hint says what to do.
func (e *BlockedError) Hint() string { return e.Obstacles[0].Fix }

// Unwrap is why a file could not be read, or nil.
func (e *BlockedError) Unwrap() error { return e.cause }
