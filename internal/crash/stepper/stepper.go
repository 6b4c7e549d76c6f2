// Package stepper runs a program under ptrace, counts the system calls with
// which it changes something outside of itself, and can kill it before the
// n-th of them: that call is not carried out.
//
// It works on the program as it is built for users, on Linux from 5.3 on
// (PTRACE_GET_SYSCALL_INFO), where ptrace is permitted.
package stepper

import "errors"

// ErrUnavailable means that this machine or this container permits no ptrace.
var ErrUnavailable = errors.New("ptrace is not available")

// Program is what to run. Its stdout and stderr are files in memory.
type Program struct {
	Path  string
	Args  []string // without the program's name
	Env   []string
	Dir   string
	Stdin string
	// Forks lets the processes that it starts run as they like; without it, it must
	// start none. It takes longer.
	Forks bool
}

// Outcome is what a run showed.
type Outcome struct {
	// Status is the exit status, -1 after a signal.
	Status         int
	Stdout, Stderr string
	// Calls are the calls that change something, in order, as "NAME" or "NAME
	// FILE"; the last one was not carried out when Killed is true (Fail: the chosen one).
	Calls  []string
	Killed bool
}
