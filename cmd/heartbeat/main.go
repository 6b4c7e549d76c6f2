// Command heartbeat runs a fleet of Claude Code agents from one file.
//
// A command parses, makes one call into the domain, and returns a result or
// an error; only the frame prints (output.go, failure.go). There is one file
// per command.
package main

import (
	"os"
	"path/filepath"
	_ "time/tzdata" // for machines that have no zoneinfo files
)

func main() {
	std := stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	// A link to the program with the name of one of heartbeat-rs's programs acts as
	// that program.
	switch args := os.Args[1:]; filepath.Base(os.Args[0]) {
	case "heartbeat-launch":
		os.Exit(run(append([]string{"launch"}, args...), std))
	case "heartbeat-stop":
		os.Exit(runHook(args, std))
	default:
		os.Exit(run(args, std))
	}
}
