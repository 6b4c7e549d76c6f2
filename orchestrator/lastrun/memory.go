package lastrun

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// kills is how often the kernel has ended a process of a control group for lack of memory.
// The zero value is of no group: the system does not tell.
type kills struct {
	Group string `json:"group,omitempty"`
	Times int    `json:"times,omitempty"`
}

// groups is where the control groups are.
const groups = "/sys/fs/cgroup"

// killsNow counts those of the group of this process.
func killsNow() kills {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return kills{}
	}
	for line := range strings.Lines(string(own)) {
		if group, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
			return killsOf(filepath.Join(groups, group))
		}
	}
	return kills{}
}

// killsOf counts those of a group; a group below it is not counted.
func killsOf(group string) kills {
	events, err := os.ReadFile(filepath.Join(group, "memory.events.local"))
	if err != nil {
		return kills{}
	}
	for line := range strings.Lines(string(events)) {
		if times, is := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); is {
			n, _ := strconv.Atoi(times) // the kernel writes a number
			return kills{group, n}
		}
	}
	return kills{}
}

// since reports whether there were more since.
func (k kills) since() bool { return k.Group != "" && killsOf(k.Group).Times > k.Times }
