package session

import (
	"errors"
	"slices"

	"heartbeat/ptyrun"
)

// Has returns the agent to whose session a process belongs, in the fleet with a state
// directory, or "": the process, by its line, or one of its ancestors is a shim, is in a
// session's control group, or has a session's token in its environment. The error is
// about what cannot be read there.
func Has(stateDir string, line []ptyrun.Forebear) (agent string, err error) {
	var unread []error
	for l, err := range noted(stateDir) {
		switch {
		case err != nil:
			unread = append(unread, err)
		case l.has(line):
			return l.Agent, nil
		}
	}
	return "", errors.Join(unread...)
}

// has reports whether one of a process's line belongs to the session.
func (l Leftover) has(line []ptyrun.Forebear) bool {
	shim := func(f ptyrun.Forebear) bool { return f.PID == l.Shim.PID }
	return slices.ContainsFunc(line, shim) && Alive(l.Shim) || l.Remains().Has(line)
}
