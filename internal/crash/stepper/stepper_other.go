//go:build !linux

package stepper

import (
	"fmt"
	"syscall"
)

// Run is not available here.
func Run(Program, int) (Outcome, error) { return unavailable() }

// Interrupt is not available here.
func Interrupt(Program, syscall.Signal, int) (Outcome, error) { return unavailable() }

// Fail is not available here.
func Fail(Program, int, syscall.Errno, bool) (Outcome, error) { return unavailable() }

func unavailable() (Outcome, error) {
	return Outcome{}, fmt.Errorf("%w: only Linux has the calls that it takes", ErrUnavailable)
}
