// Package handwired is heartbeat-rs's Stop hook of a queue in a file, as people wire it by hand
// (heartbeat-stop --inbox …), and its recovery (heartbeat-stop recover). It has heartbeat-rs's
// files, flags and meaning, and our proofs. No scheduler and no shim stand behind it, and it works
// in no directory where a session of ours lives.
package handwired

import (
	"io"
	"time"

	"heartbeat/hook/crashpoint"
	"heartbeat/hook/harden"
)

// Call is the process environment of one call, so that tests can build one.
type Call struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
}

// Main runs one call and returns its exit status. Its arguments are "recover", or flags
// (--inbox …), perhaps behind "hook stop". It exits with 2 only when an entry is on stderr; where
// that is the process's own, nothing else can write to it either.
func Main(c Call) int {
	harden.Process()
	crashpoint.At("start")
	args := c.Args
	if len(args) > 0 && args[0] == "recover" {
		return recoverOrphan(c, args[1:])
	}
	if len(args) > 0 && args[0] == "hook" {
		args = flagsOf(args[1:])
	}
	return stop(c, args)
}

// flagsOf returns the arguments from the first flag on.
func flagsOf(args []string) []string {
	for i, a := range args {
		if len(a) > 0 && a[0] == '-' {
			return args[i:]
		}
	}
	return nil
}

// margin is the time that a waiting hook needs to end by itself after its longest wait.
const margin = 10 * time.Second

// Timeout is the time-out, in whole seconds, that the client's settings must give the Stop hook
// with --mode persist and this --idle-interval.
func Timeout(idle time.Duration) time.Duration {
	return (idle + margin + time.Second - 1).Truncate(time.Second)
}
