package orchestrator

import (
	"errors"
	"fmt"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/preflight"
)

// errFinished ends a run with Once.
var errFinished = errors.New("nothing is left to do")

// ErrShutdown is the cause with which a run ends when it was asked to.
var ErrShutdown = errors.New("asked to stop")

// errOnceTimeout ends a run with Once that took too long.
var errOnceTimeout = errors.New("once-timeout")

// UnknownAgentError means that a scheduler runs no agent of that name.
type UnknownAgentError struct{ Agent string }

// Error names the agent.
func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("cannot find agent %q in the running scheduler", e.Agent)
}

// Hint says what to do.
func (e *UnknownAgentError) Hint() string {
	return "`heartbeat status` lists the agents; one that was just declared is run after a reload (kill -HUP)"
}

// errStopping is the answer to requests to a run that is ending.
var errStopping = errors.New("the scheduler is stopping")

// needsPerson reports whether only a person can help against an error.
func needsPerson(err error) bool {
	return errors.Is(err, inbox.ErrNeedsOperator) || errors.Is(err, launch.ErrNeedsPerson)
}

// withHint returns an error with what to do, if it says that.
func withHint(err error) string {
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return err.Error() + "; " + h.Hint()
	}
	return err.Error()
}

// failure returns an error of ours as an agent takes it.
func failure(err error) *agent.Failed {
	if err == nil {
		return nil
	}
	f := &agent.Failed{Text: withHint(err), Person: needsPerson(err), NoRoom: launch.Passes(err)}
	if b, ok := errors.AsType[*preflight.BlockedError](err); ok && !f.NoRoom {
		f.Text, f.Fix = f.Text+agent.GoesOnByItself, b.Hint()
	}
	return f
}
