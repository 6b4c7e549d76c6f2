// Package person is the one owner of the question whether a person asks: over the
// control socket, on the page, at a session's terminal, and in commands, with a run or
// without one. Descent decides, which the kernel knows (see ptyrun.Bind), and no mark
// that a process can take off or make.
//
// An agent has the rights of the user that it runs as. What has others start processes
// for it (the user's service manager, cron, ssh to this machine, a person's terminal) is
// a person here, and `heartbeat help security` lists it. Only an account of its own, or a
// container, keeps an agent from that.
package person

import (
	"os"
	"runtime"
	"slices"

	"heartbeat/hook"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
	"heartbeat/ptyrun"
)

// Check returns nil if a process is a person's. Otherwise the error is a *NobodyError
// or, if it cannot be told, another one. stateDir is that of the fleet which is asked,
// "" where that is not known: what is recorded there names the agent, and what cannot be
// read there is an error.
func Check(pid int, stateDir string) error {
	line := ptyrun.Lineage(pid)
	if len(line) == 0 {
		return ErrGone
	}
	agent, what, err := belongs(line, stateDir)
	if agent != "" {
		return &NobodyError{Agent: agent, What: what}
	}
	if why := judge(seen(line)); why != "" {
		return &NobodyError{Why: why}
	}
	return err
}

// belongs returns the agent that a process's line says it is of: by what is recorded of
// sessions and checks in all fleets of this user, and by its environment.
func belongs(line []ptyrun.Forebear, stateDir string) (agent, what string, err error) {
	others := state.All()
	if stateDir != "" {
		others = state.Beside(stateDir)
	}
	var unread error
	for _, dir := range append(others, stateDir) {
		if dir == "" {
			continue
		}
		agent, err := session.Has(dir, line)
		if agent != "" {
			return agent, "", nil
		}
		if dir == stateDir {
			unread = err
		}
		if agent := proof.Has(dir, line); agent != "" {
			return agent, "check", nil
		}
	}
	for _, f := range line {
		if agent := f.Variable(hook.EnvAgent); agent != "" {
			return agent, "command", nil
		}
	}
	return "", "", unread
}

// seen are the facts of a process's line.
func seen(line []ptyrun.Forebear) facts {
	self, _ := os.Executable()
	f := facts{Line: line, Holds: ptyrun.BrandHolds(), Vague: runtime.GOOS != "linux", Self: self}
	if f.Holds {
		return f
	}
	if me := ptyrun.Lineage(os.Getpid()); len(me) > 0 && me[0].Branded {
		f.Since = me[0].Start
	}
	if at := slices.IndexFunc(line, isReaper); at > 0 {
		if leader := line[at-1].Session; leader != line[at-1].PID {
			f.Leader = ptyrun.Lineage(leader)
		}
	}
	if len(f.Leader) > 0 && (f.Leader[0].Session != f.Leader[0].PID || !lives(f.Leader[0].PID)) {
		f.Leader = nil // it has ended, and another process may have its number
	}
	return f
}

func lives(pid int) bool {
	_, err := ptyrun.StartTimeOf(pid)
	return err == nil
}
