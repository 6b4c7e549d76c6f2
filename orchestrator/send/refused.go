package send

import (
	"fmt"
	"strings"

	"heartbeat/orchestrator/status"
)

// DownError means that an agent cannot work, and refuses prompts meanwhile.
type DownError struct {
	Agent, Text string
	Trouble     status.Trouble
}

// Error says why, and what the fleet's file says to it.
func (e *DownError) Error() string {
	text := fmt.Sprintf("cannot queue the prompt: agent %q takes none now: %s", e.Agent, e.Trouble.Text)
	if e.Text != "" {
		text += "; " + e.Text
	}
	return text
}

// Hint says what to do.
func (e *DownError) Hint() string { return e.Trouble.Do }

// TargetError means that the fleet does not declare who should get the reply.
type TargetError struct {
	Target string
	Known  []string
}

// Error says whom.
func (e *TargetError) Error() string {
	return fmt.Sprintf("cannot queue the prompt: nobody is declared as %q in notify:", e.Target)
}

// Hint says who there is.
func (e *TargetError) Hint() string {
	if len(e.Known) == 0 {
		return "heartbeat help notify shows how to declare one"
	}
	return "the targets are " + strings.Join(e.Known, ", ")
}

// DirectoryError means that an agent's directory does not exist.
type DirectoryError struct {
	Agent string
	Err   error
}

// Error says which.
func (e *DirectoryError) Error() string {
	return fmt.Sprintf("cannot queue the prompt: cannot find the directory of agent %q: %v", e.Agent, e.Err)
}

// Hint says what to do: a wrong "dir" does not create an empty workspace that
// nobody reads.
func (e *DirectoryError) Hint() string {
	return "heartbeat apply " + e.Agent + " makes it; or correct dir in the configuration"
}

// Unwrap returns the cause.
func (e *DirectoryError) Unwrap() error { return e.Err }
