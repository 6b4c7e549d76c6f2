// Command heartbeat-stop is the hook binary: the hooks of heartbeat's own
// sessions, and heartbeat-rs's hand-wired Stop hook. It links nothing but the
// standard library, because it starts at every tool call.
package main

import (
	"os"

	"heartbeat/hook"
)

func main() {
	os.Exit(hook.Main(hook.Call{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
	}))
}
