package stepper

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// call is a system call that can change something outside of the process.
type call struct {
	name string
	fd   bool // its first argument is the descriptor of what it changes
}

// changing are the calls that count. Go's standard library uses the *at forms
// only, on every architecture; SQLite, which is translated from C, the older ones, too, where
// there are any (olderCalls).
var changing = map[uint64]call{
	unix.SYS_OPENAT:     {name: "openat"}, // with O_CREAT or O_TRUNC
	unix.SYS_WRITE:      {"write", true},  // except to eventfds
	unix.SYS_WRITEV:     {"writev", true},
	unix.SYS_PWRITE64:   {"pwrite", true},
	unix.SYS_PWRITEV:    {"pwritev", true},
	unix.SYS_FSYNC:      {"fsync", true},
	unix.SYS_FDATASYNC:  {"fdatasync", true},
	unix.SYS_FTRUNCATE:  {"ftruncate", true},
	unix.SYS_FALLOCATE:  {"fallocate", true},
	unix.SYS_RENAMEAT:   {name: "renameat"},
	unix.SYS_RENAMEAT2:  {name: "renameat2"},
	unix.SYS_UNLINKAT:   {name: "unlinkat"},
	unix.SYS_LINKAT:     {name: "linkat"},
	unix.SYS_SYMLINKAT:  {name: "symlinkat"},
	unix.SYS_MKDIRAT:    {name: "mkdirat"},
	unix.SYS_FCHMOD:     {"fchmod", true},
	unix.SYS_FCHMODAT:   {name: "fchmodat"},
	unix.SYS_UTIMENSAT:  {name: "utimensat"},
	unix.SYS_EXIT_GROUP: {name: "exit_group"},
}

// opening are the calls that open a file, and which argument has the flags.
var opening = map[uint64]int{unix.SYS_OPENAT: 2}

// describe returns the call as Outcome.Calls has it; "" when it changes
// nothing.
func describe(pid int, nr uint64, args [6]uint64) string {
	c, ok := changing[nr]
	if flags, opens := opening[nr]; !ok || opens && args[flags]&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return ""
	}
	if !c.fd {
		return c.name
	}
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, args[0]))
	if err != nil {
		return c.name
	}
	if strings.HasPrefix(target, "anon_inode:") {
		return "" // the runtime wakes itself
	}
	return c.name + " " + path.Base(target)
}
