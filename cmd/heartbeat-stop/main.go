// Command heartbeat-stop is the hook binary: the hooks of heartbeat's own
// sessions, and heartbeat-rs's hand-wired Stop hook. It links nothing but the
// standard library, because it starts at every tool call.
package main

import (
	"os"

	"heartbeat/hook/ask"
	"heartbeat/hook/handwired"
)

func main() {
	call := ask.Call{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	if ask.Is(call.Args) {
		os.Exit(ask.Main(call))
	}
	os.Exit(handwired.Main(handwired.Call(call)))
}
