package ptyrun

import (
	"errors"
	"fmt"
	"strings"
)

// Bind makes this process answer for all that will ever descend from it. It adopts
// their orphans (Linux), and brands itself: a brand passes to all that a process starts,
// and no process takes it off that has not the right to raise limits (CAP_SYS_RESOURCE),
// however it hides: with another environment, another control group, another terminal, a
// double fork, another user namespace, or an ancestor that was killed. It cannot be
// undone, and has to come before anything is started.
//
// The brand is the hard limit of RLIMIT_LOCKS, which has limited nothing since Linux
// 2.4.25, and which nobody sets so low.
func Bind() error { return errors.Join(becomeReaper(), keepReaping(), brand()) }

// brandMark is the hard limit that brands: it, or a lower one, since limits can always be
// lowered.
const brandMark = 1

// IsGroupName reports whether a control group of a name is one that PlanGroup names: it
// holds what a session, a check or the like has started, and nothing else.
func IsGroupName(name string) bool {
	var pid int
	var start uint64
	n, _ := fmt.Sscanf(name, "heartbeat-%d-%d-", &pid, &start)
	return n == 2 && !strings.HasSuffix(name, "-run") && !strings.Contains(name, ".")
}
