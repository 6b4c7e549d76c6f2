package ptyrun

import (
	"errors"
	"fmt"
	"strconv"
)

// Limits are what a child and all of its tree may take of the machine; 0 is no
// limit. They are kept by a control group (cgroups(7), version 2), where
// MakeRoom has made room for one.
type Limits struct {
	// Memory is in bytes, without swap. A tree that needs more is killed as a
	// whole.
	Memory int64 `json:"memory,omitempty"`
	// Processes is how many processes and threads there may be at once; fork(2)
	// fails with EAGAIN for one more.
	Processes int `json:"processes,omitempty"`
	// CPU is how many processor cores.
	CPU float64 `json:"cpu,omitempty"`
	// Required has a child that cannot have these not be started at all;
	// otherwise it runs without them (Child.Unlimited).
	Required bool `json:"required,omitempty"`
}

// None reports whether nothing is limited.
func (l Limits) None() bool { return l.Memory == 0 && l.Processes == 0 && l.CPU == 0 }

// limit is a value to write into a file of a control group.
type limit struct {
	controller, file, value string
	// extra is done without where the kernel has no such file.
	extra bool
}

// cpuPeriod is the kernel's default, in microseconds (cpu.max).
const cpuPeriod = 100_000

// files are what to write for the limits, as Linux's
// Documentation/admin-guide/cgroup-v2.rst has it.
func (l Limits) files() []limit {
	var all []limit
	if l.Memory > 0 {
		all = append(all,
			limit{"memory", "memory.max", strconv.FormatInt(l.Memory, 10), false},
			limit{"memory", "memory.swap.max", "0", true},  // without swap accounting
			limit{"memory", "memory.oom.group", "1", true}, // before Linux 4.19
		)
	}
	if l.Processes > 0 {
		all = append(all, limit{"pids", "pids.max", strconv.Itoa(l.Processes), false})
	}
	if l.CPU > 0 {
		all = append(all, limit{"cpu", "cpu.max", fmt.Sprintf("%d %d", int64(l.CPU*cpuPeriod), cpuPeriod), false})
	}
	return all
}

// NoLimitsError says why limits cannot be kept, and what to do about it.
type NoLimitsError struct{ Why, Cure string }

func (e *NoLimitsError) Error() string {
	return "limits of memory, processes and cpu cannot be kept: " + e.Why
}

// Hint is what to do about it.
func (e *NoLimitsError) Hint() string { return e.Cure }

// Cure is what to do about an error of limits, or "".
func Cure(err error) string {
	if lack, ok := errors.AsType[*NoLimitsError](err); ok {
		return lack.Cure
	}
	return ""
}

// OutOfMemory says that the kernel killed processes of a tree because memory ran
// out, and whose; "" where it did not, or that is not known.
type OutOfMemory string

// Whose memory it was.
const (
	OwnMemory     OutOfMemory = "limit"   // Limits.Memory
	MachineMemory OutOfMemory = "machine" // that of the machine, or a limit that holds for more than the tree
)
