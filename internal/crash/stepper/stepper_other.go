//go:build !linux

package stepper

import "fmt"

// Run is not available here.
func Run(Program, int) (Outcome, error) {
	return Outcome{}, fmt.Errorf("%w: only Linux has the calls that it takes", ErrUnavailable)
}
