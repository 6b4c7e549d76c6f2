package ptyrun

import (
	"slices"
	"strconv"
	"strings"

	"heartbeat/hook/client"
	"heartbeat/hook/inpath"
)

// ownMarkers are the variables that identify our sessions: a hook that finds them
// would act for another session. The client has its own (see client.Variables); all
// its other variables are passed on, for example CLAUDE_EFFORT,
// CLAUDE_STREAM_IDLE_TIMEOUT_MS, CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS and
// ANTHROPIC_BASE_URL.
var ownMarkers = []string{"HEARTBEAT_SESSION", "HEARTBEAT_SOCKET", "HEARTBEAT_HOME", "HEARTBEAT_AGENT"}

// serviceMarkers are the variables by which a service manager communicates with the
// process that it started (sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3)):
// a child that used them would speak for us.
var serviceMarkers = []string{
	"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC",
	"LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES", "FDSTORE", "MAINPID",
}

// MarksSession reports whether a variable marks a process as part of a session.
// CleanEnv removes such variables.
func MarksSession(name string) bool {
	return slices.Contains(ownMarkers, name) || slices.Contains(client.Claude.Variables.Marks, name)
}

// CleanEnv returns env as a child in a PTY of the default size needs it: without
// the markers of the session that we may run in and of the service manager that may
// have started us, without what the client is not to inherit, and with TERM (xterm-256color if it is not set, empty or dumb),
// COLUMNS and LINES.
func CleanEnv(env []string) []string {
	out := make([]string, 0, len(env)+3)
	term := "xterm-256color"
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == "TERM":
			if value != "" && value != "dumb" {
				term = value
			}
		case name == "COLUMNS" || name == "LINES" || MarksSession(name) || client.Claude.Variables.Drops(name) || slices.Contains(serviceMarkers, name):
		default:
			out = append(out, kv)
		}
	}
	return append(out, "TERM="+term,
		"COLUMNS="+strconv.Itoa(DefaultCols), "LINES="+strconv.Itoa(DefaultRows))
}

// withoutSize removes variables that would hide the terminal's real size from
// programs that trust the environment first.
func withoutSize(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return strings.HasPrefix(kv, "COLUMNS=") || strings.HasPrefix(kv, "LINES=")
	})
}

// lookPath finds a command in the PATH of the child's environment, not ours. A name
// with a slash is left to the kernel, which resolves it in the child's directory.
// Relative elements of PATH are skipped, as in os/exec.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	return inpath.Find(inpath.Of(env), name)
}
