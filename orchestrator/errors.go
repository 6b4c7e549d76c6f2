package orchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/session"
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
	return "heartbeat status lists the agents; one that was just declared is run after heartbeat reload"
}

// errStopping is the answer to requests to a run that is ending.
var errStopping error = stoppingError{}

type stoppingError struct{}

// Error says why nothing is done.
func (stoppingError) Error() string { return "the scheduler is stopping" }

// Hint says what to do.
func (stoppingError) Hint() string {
	return "heartbeat status says what its end waits for; then heartbeat run starts another one"
}

// notTo is the answer to a request to do something with agents; none: all.
func notTo(verb string, names []string) error {
	who := "all agents"
	switch len(names) {
	case 0:
	case 1:
		who = fmt.Sprintf("agent %q", names[0])
	default:
		who = "agents " + strings.Join(names, ", ")
	}
	return fmt.Errorf("cannot %s %s: %w", verb, who, errStopping)
}

// needsPerson reports whether only a person can help against an error.
func needsPerson(err error) bool {
	return errors.Is(err, inbox.ErrNeedsOperator) || errors.Is(err, launch.ErrNeedsPerson)
}

// answerOf is what a person does for an agent whose queue asks: the agent goes on with the
// answer, and needs no resume.
func (o Options) answerOf(name string) string { return cmp.Or(o.Ours, "heartbeat") + " answer " + name }

// HintOf returns what an error says is to be done, or "": errors that know it have a
// method Hint.
func HintOf(err error) string {
	if h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return h.Hint()
	}
	return ""
}

// failure returns an error of ours as the agent that is declared as def takes it.
func (s *Scheduler) failure(def *config.Agent, err error) *agent.Failed {
	if err == nil {
		return nil
	}
	f := &agent.Failed{Text: err.Error(), Fix: HintOf(err), Person: needsPerson(err), NoRoom: launch.Passes(err)}
	if _, ok := errors.AsType[*preflight.BlockedError](err); ok && !f.NoRoom {
		f.Blocks = true
	}
	if errors.Is(err, inbox.ErrNeedsOperator) {
		f.Fix = s.opt.answerOf(def.Name)
	}
	if session.DiskFull(err) {
		f.Fix = preflight.FreeRoom(def.Dir, s.opt.StateDir)
	}
	return f
}
