//go:build linux && !amd64

package stepper

// filter is written for amd64 only: elsewhere the process stops at all calls.
func (*run) filter() (bool, error) { return false, nil }
