// Command heartbeat runs a fleet of Claude Code agents from one file.
//
// A command parses, makes one call into the domain, and returns a result or
// an error; only the frame prints (output.go, failure.go). There is one file
// per command.
package main

import (
	"os"
	_ "time/tzdata" // for machines that have no zoneinfo files
)

func main() {
	os.Exit(run(os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
