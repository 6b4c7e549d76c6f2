package ptyrun

import "errors"

// Limits are what a child and its whole tree may use of the machine; 0 is no limit.
// A control group enforces them (cgroups(7), version 2), where MakeRoom has
// prepared for one.
type Limits struct {
	// Memory is in bytes, without swap. When a tree needs more, all of it is
	// killed.
	Memory int64 `json:"memory,omitempty"`
	// Processes is how many processes and threads may exist at once; for one more,
	// fork(2) fails with EAGAIN.
	Processes int `json:"processes,omitempty"`
	// CPU is a number of processor cores.
	CPU float64 `json:"cpu,omitempty"`
	// Required means that a child that cannot have these limits is not started at
	// all; otherwise it runs without them (Child.Unlimited).
	Required bool `json:"required,omitempty"`
}

// None reports whether nothing is limited.
func (l Limits) None() bool { return l.Memory == 0 && l.Processes == 0 && l.CPU == 0 }

// NoLimitsError says why limits cannot be enforced, and what to do about it.
type NoLimitsError struct{ Why, Cure string }

func (e *NoLimitsError) Error() string {
	return "limits of memory, processes and cpu cannot be kept: " + e.Why
}

// Hint is what to do about it.
func (e *NoLimitsError) Hint() string { return e.Cure }

// Cure returns what to do about an error of limits, or "".
func Cure(err error) string {
	if lack, ok := errors.AsType[*NoLimitsError](err); ok {
		return lack.Cure
	}
	return ""
}

// OutOfMemory says that the kernel killed processes of a tree because memory ran
// out, and whose memory; "" if it did not, or that is not known.
type OutOfMemory string

// Whose memory ran out.
const (
	OwnMemory     OutOfMemory = "limit"   // Limits.Memory
	MachineMemory OutOfMemory = "machine" // the machine's, or a limit that applies to more than the tree
)
