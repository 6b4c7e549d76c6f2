package person

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/ptyrun"
)

// NobodyError means that a process belongs to a fleet, and may not do what only a person
// may: approve, reject, resume, stop and the like.
type NobodyError struct {
	Agent string // whose session it is, where that is known
	// What it is of the agent, if it is no session: "check", "command".
	What string
	// Why it is none, where no agent is known.
	Why string
}

// Error says who asks.
func (e *NobodyError) Error() string {
	if e.Agent == "" {
		return e.Why + ", and only a person may"
	}
	return fmt.Sprintf("a %s of agent %q asks, and only a person may", cmp.Or(e.What, "session"), e.Agent)
}

// Hint says what helps a person who is taken for none.
func (e *NobodyError) Hint() string {
	if e.Why == ofAnOrphan || e.Why == ofNoOne {
		return "run it in a shell of yours, or in a new login; heartbeat help approvals says who is a person"
	}
	return "heartbeat help approvals says what sessions may do"
}

// Why somebody is nobody.
const (
	ofAFleet   = "a process that heartbeat has started asks"
	ofAnOrphan = "a process without a terminal asks, and what started it has ended"
	ofNoOne    = "a process asks, and this system does not tell who started it"
)

// ErrGone means that it cannot be told whether a person asks: the process has ended.
var ErrGone = errors.New("the process that asks has ended, so it cannot be told whether a person asks")

// facts are what the rule knows of who asks.
type facts struct {
	// Line is the process that asks and its ancestors, the nearest first.
	Line []ptyrun.Forebear
	// Leader is the same of the leader of the process session of the oldest of them
	// below the first process of the system, if that leader lives and is another one.
	Leader []ptyrun.Forebear
	// Holds is true where no process can have taken the brand off (ptyrun.BrandHolds).
	Holds bool
	// Vague is true where the system passes no brand on, so that a daemon cannot be told
	// from an orphan.
	Vague bool
	// Since is when the scheduler or shim began that judges; 0: a command does.
	Since uint64
	// Self is the program that judges.
	Self string
}

// judge says why somebody is nobody, or "": it is the rule of who is a person.
//
// Whatever a scheduler, a shim, a check, a poll, a gate or a notice has started, at
// whatever distance, has the brand, and is nobody; so is what one of them has adopted.
// Where the brand holds, everything else of the user is a person: nothing that an agent
// has ever started is without it.
//
// Only root can take it off, and some systems have none. There the oldest ancestor below
// the first process is looked at too. It is the system's own if another user runs it
// (sshd, cron), if it is in the first process's session, which nobody enters, or if
// nothing of it can be seen (docker exec). If it leads a process session, it is a daemon,
// such as a runner of CI. Otherwise its parent has ended, and the first process or the
// user's service manager has adopted it: if it is younger than the scheduler, it is a
// person's only if the leader of its process session lives and is one. What stands in the
// control group of a service of ours is nobody.
//
// Where there is no brand, a daemon cannot be told from an orphan: only a terminal, or a
// program that was installed for all, makes a person.
func judge(f facts) (why string) {
	for _, p := range f.Line {
		if p.Branded || isOurs(p, f.Self) || inSessionsGroup(p.Group) {
			return ofAFleet
		}
	}
	if f.Holds {
		return ""
	}
	return f.orphan()
}

// orphan says why the oldest ancestor is an orphan of nobody known.
func (f facts) orphan() (why string) {
	reaper := slices.IndexFunc(f.Line, isReaper)
	if reaper < 1 {
		return "" // the first process itself, or somebody outside of this container
	}
	oldest, first := f.Line[reaper-1], f.Line[reaper]
	leads := oldest.Session == oldest.PID
	switch {
	case !oldest.Mine || oldest.Session == first.Session && !f.Vague:
		return ""
	case inUnitOfOurs(oldest.Group):
		return ofAFleet
	case f.Vague && isSystems(oldest.Program):
		return ""
	case f.Vague && !oldest.Terminal:
		return ofNoOne
	case leads || oldest.Start < f.Since || f.Since == 0 && !f.Vague:
		return ""
	case f.Leader == nil:
		return ofAnOrphan
	}
	return judge(facts{Line: f.Leader, Vague: f.Vague, Self: f.Self}) // it leads its session: this ends here
}

// isReaper reports whether a process adopts orphans that no scheduler or shim adopts.
func isReaper(p ptyrun.Forebear) bool {
	return p.PID == 1 || p.Mine && filepath.Base(p.Program) == "systemd" && slices.Contains(p.Args, "--user")
}

// isOurs reports whether a process is a scheduler or a shim. They have the brand, too,
// but on systems that have none, and one that an older version has started.
func isOurs(p ptyrun.Forebear, self string) bool {
	if len(p.Args) < 2 || p.PID == 1 {
		return false
	}
	ours := func(program string) bool { return strings.HasPrefix(filepath.Base(program), "heartbeat") }
	if p.Program != self && !ours(p.Program) && !ours(p.Args[0]) {
		return false
	}
	for _, arg := range p.Args[1:] {
		switch arg {
		case "run":
			return true
		case "launch":
			return slices.Contains(p.Args, "--shim")
		case "--":
			return false
		}
	}
	return false
}

// inSessionsGroup reports whether a control group is, or is below, one that heartbeat has
// made (ptyrun.PlanGroup).
func inSessionsGroup(group string) bool {
	return slices.ContainsFunc(strings.Split(group, "/"), ptyrun.IsGroupName)
}

// inUnitOfOurs reports whether a control group is that of a service of ours. The service
// manager itself runs the unit's other commands, such as its reload, in .control.
func inUnitOfOurs(group string) bool {
	parts := strings.Split(group, "/")
	return parts[len(parts)-1] != ".control" && slices.ContainsFunc(parts, func(name string) bool {
		return strings.HasPrefix(name, "heartbeat") && strings.HasSuffix(name, ".service")
	})
}

// isSystems reports whether a program is macOS's, or an application that was installed
// for all, such as a terminal.
func isSystems(program string) bool {
	return strings.HasPrefix(program, "/System/") || strings.HasPrefix(program, "/Applications/")
}
