package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"heartbeat/hook"
	"heartbeat/ptyrun"
)

// NotPersonError means that a process belongs to a session, and may not do what only a
// person may: approve, reject, resume, stop and the like.
type NotPersonError struct {
	Agent string // whose session it is
	// What it is of the agent, if it is no session: "check", "command".
	What string
}

// Error says whose session asks.
func (e *NotPersonError) Error() string {
	return fmt.Sprintf("a %s of agent %q asks, and only a person may", cmp.Or(e.What, "session"), e.Agent)
}

// ErrGone means that it cannot be told whether a person asks: the process has ended.
var ErrGone = errors.New("the process that asks has ended, so it cannot be told whether a person asks")

// CheckPerson tells people from agents' sessions. It returns nil if a process belongs to
// no session of a fleet with one of the state directories, and to no command of an agent:
// neither it nor one of its ancestors is a shim, is in a session's control group, or has
// a session's token or an agent's name in its environment, as commands of triggers have.
// Otherwise the error is a *NotPersonError; if it cannot be told, another one. What cannot
// be read in the other directories is no error.
//
// An agent has the rights of the user that it runs as: with the user's service
// manager, cron or ssh it can have a process started that no session has. Only an
// account of its own keeps it from that.
func CheckPerson(pid int, stateDir string, others ...string) error {
	line := ptyrun.Lineage(pid)
	if len(line) == 0 {
		return ErrGone
	}
	var unread []error
	for _, dir := range append(others, stateDir) {
		if dir == "" {
			continue
		}
		for l, err := range noted(dir) {
			switch {
			case err != nil && dir == stateDir:
				unread = append(unread, err)
			case err == nil && l.has(line):
				return &NotPersonError{Agent: l.Agent}
			}
		}
	}
	for _, f := range line {
		if agent := f.Variable(hook.EnvAgent); agent != "" {
			return &NotPersonError{Agent: agent, What: "command"}
		}
	}
	return errors.Join(unread...)
}

// has reports whether one of a process's line belongs to the session.
func (l Leftover) has(line []ptyrun.Forebear) bool {
	shim := func(f ptyrun.Forebear) bool { return f.PID == l.Shim.PID }
	return slices.ContainsFunc(line, shim) && Alive(l.Shim) || l.Remains().Has(line)
}
