// Package hook is our side of Claude Code's hook contract (measured in
// 2.1.329): payloads, the session fence, the tick's decision, and the way
// an entry is handed over. It imports the standard library only, because it
// starts at every tool call and at the end of every turn.
//
// Exit status 2 means "stderr is a prompt". Nothing here may exit with 2, or write
// to stderr, for any other reason.
package hook

import (
	"io"
	"strings"
)

// Call is the process environment of one hook call, so that tests can build one.
type Call struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
}

// Main runs one hook call and returns its exit status. The first argument
// says which: "hook" for the generated entries (the event stands in the
// payload), "hook status-line" for the status line, "recover", or flags (--inbox …) for heartbeat-rs's hand-wired Stop
// hook.
//
// It exits with 2 only when an entry is on stderr; where the Call's Stderr is the
// process's own, nothing else can write to it either.
func Main(c Call) int {
	if isForeign(c) {
		return 0
	}
	harden()
	crashPoint("start")
	args := c.Args
	if len(args) > 0 {
		switch args[0] {
		case "hook":
			if len(args) > 1 && args[1] == statusLineWord {
				return statusLine(c, strings.Join(args[2:], " "))
			}
			// Flags after it are the hand-wired form's ("hook stop --inbox F").
			if rest := flagsOf(args[1:]); len(rest) > 0 {
				return wiredStop(c, rest)
			}
			return sessionHook(c)
		case "recover":
			return recoverOrphan(c, args[1:])
		}
	}
	return wiredStop(c, args)
}

// isForeign reports whether a generated hook was called by a client that does not
// belong to a session of ours. At this point nothing has run that could exit with
// 2, and returning before the signal handlers are set up saves a fifth of the time
// at each tool call of such a client.
func isForeign(c Call) bool {
	return len(c.Args) > 0 && c.Args[0] == "hook" && len(flagsOf(c.Args[1:])) == 0 && c.Getenv(EnvSession) == ""
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
