//go:build linux && !amd64

package stepper

import "golang.org/x/sys/unix"

// filter is written for amd64 only: elsewhere the process stops at all calls.
func (*run) filter() (bool, error) { return false, nil }

// refuse is not done here.
func refuse(int, unix.Errno) error { return ErrUnavailable }
