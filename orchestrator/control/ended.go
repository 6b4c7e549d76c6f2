package control

import (
	"errors"
	"io"
	"syscall"

	"heartbeat/hook/process"
)

// EndedError means that a scheduler had the request, and ended before it answered: it may
// have done what was asked, or not.
type EndedError struct {
	PID int // 0: not known
	// Runs is true if a scheduler has the socket all the same: it cuts off those who ask while
	// hundreds do.
	Runs bool
	What string // the request
	// Look is the command that shows whether it was done.
	Look string
}

// Error says what is not known.
func (e *EndedError) Error() string {
	what := " ended before it answered"
	if e.Runs {
		what = " closed the connection before it answered: too many ask it at once, or it has just begun"
	}
	return "cannot tell the answer to " + e.What + ": the scheduler" + process.Numbered(e.PID) + what
}

// Hint says what to do.
func (e *EndedError) Hint() string {
	if e.What == "status" {
		return "nothing was asked to change; " + e.Look + " says whether another one runs"
	}
	return "whether it was done is unknown; look with " + e.Look
}

// looks are the commands that show whether a request was carried out.
var looks = map[string]string{
	"status": "heartbeat status", "pause": "heartbeat status", "resume": "heartbeat status", "pause-trigger": "heartbeat status", "resume-trigger": "heartbeat status", "restart": "heartbeat events", "cancel": "heartbeat history",
	"trigger": "heartbeat inbox", "stop": "heartbeat status", "answer-approval": "heartbeat approval list --all", "withdraw-approvals": "heartbeat approval list --all",
	"answered": "heartbeat events", "tokens": "heartbeat page tokens", "await": "heartbeat inbox", "later": "heartbeat next", "reload": "heartbeat events",
}

// cutOff reports whether an error is that of a connection whose other end has gone.
func cutOff(err error) bool {
	for _, of := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}
