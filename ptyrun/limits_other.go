//go:build !linux

package ptyrun

var errNoGroups = &NoLimitsError{
	Why:  "this system has no control groups",
	Cure: "run the fleet on Linux, or remove resources:",
}

// MakeRoom prepares for children with limits; on this system there are none.
func MakeRoom() error { return errNoGroups }

// CanLimit says why children of a run cannot have limits; on this system none can.
func CanLimit(_ int, l Limits) error {
	if l.None() {
		return nil
	}
	return errNoGroups
}

func groupEvents(string) (OutOfMemory, int) { return "", 0 }
