package ptyrun

import "errors"

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
