package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Remains identifies what a process leaves behind when it can no longer end its own
// tree. The zero value identifies nothing.
type Remains struct {
	// Cookie finds processes of our user that have HEARTBEAT_SESSION=Cookie in
	// their environment and were not started before StartedAfter (in the unit of
	// [StartTimeOf]), and their descendants.
	Cookie       string
	StartedAfter uint64
	// Group is the control group of the child, "" if it had none. A group that
	// PlanGroup did not name is ignored.
	Group string
}

// Find returns the living processes that r identifies; never this process or one of
// its ancestors.
func (r Remains) Find() ([]Process, error) {
	procs, err := r.find()
	return public(procs), err
}

func (r Remains) find() ([]process, error) {
	procs, err := snapshot()
	var inGroup map[int]bool
	if ourGroup(r.Group) {
		inGroup = groupMembers(r.Group)
	}
	return closure(procs, os.Getpid(), func(p process) bool {
		return inGroup[p.pid] || r.Cookie != "" && p.start >= r.StartedAfter && inSession(environ(p.pid), r.Cookie)
	}), err
}

// Sweep ends the processes that r identifies: SIGTERM, and SIGKILL after the grace
// or when ctx is done. It removes the control group. Sweep returns what it ended;
// the error says what it could not end.
func Sweep(ctx context.Context, r Remains, grace time.Duration) ([]Process, error) {
	if r.Cookie == "" {
		return nil, errors.New("cannot sweep processes: no cookie is given")
	}
	var lookErr error
	find := func() (procs []process, err error) {
		procs, lookErr = r.find()
		return procs, lookErr
	}
	ended, left := endAll(find, syscall.SIGTERM, grace, grace, ctx.Done())
	if len(left) > 0 || lookErr != nil {
		var killed []Process
		if ourGroup(r.Group) {
			ended = append(ended, emptyGroup(r.Group)...)
		}
		killed, left = killAll(find)
		ended = append(ended, killed...)
	}
	reapOrphans()
	if ourGroup(r.Group) {
		removeGroup(r.Group)
	}
	switch {
	case lookErr != nil:
		return unique(ended), fmt.Errorf("cannot sweep processes: %w", lookErr)
	case len(left) > 0:
		return unique(ended), fmt.Errorf("cannot end %d processes, the first is %d (%s)", len(left), left[0].PID, left[0].Command)
	}
	return unique(ended), nil
}

func unique(procs []Process) []Process {
	seen := map[identity]bool{}
	var out []Process
	for _, p := range procs {
		if id := (identity{p.PID, p.Start}); !seen[id] {
			seen[id] = true
			out = append(out, p)
		}
	}
	return out
}
