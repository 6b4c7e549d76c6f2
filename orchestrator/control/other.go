package control

import (
	"fmt"

	"heartbeat/hook/process"
)

// OtherError means that a scheduler runs whose answer is none of this version: most likely
// it was started before an upgrade, and goes on with the program that it began with.
type OtherError struct {
	PID  int    // 0: not known
	What string // the request

	cause error
}

// Error says what it answered.
func (e *OtherError) Error() string {
	return fmt.Sprintf("cannot %s: the running scheduler%s is of another version: it answers %v", e.What, process.Numbered(e.PID), e.cause)
}

// Unwrap returns what was wrong with the answer.
func (e *OtherError) Unwrap() error { return e.cause }

// Hint says how to have one of this version.
func (e *OtherError) Hint() string {
	end := "end it as Ctrl-C does"
	if e.PID != 0 {
		end = fmt.Sprintf("end it with kill %d", e.PID)
	}
	return end + ", which lets turns finish; then start this version with heartbeat run, or as the service does"
}
