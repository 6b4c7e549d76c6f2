package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"heartbeat/hook/settings"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/remote"
)

// ours is how a command line begins that is about the same fleet, on the same machine:
// with the -f and the --host that this one was given.
func (a *app) ours() string {
	file := a.file()
	if a.found {
		file = ""
	}
	return beginning(file)
}

// beginning is how a command line begins for a file that was named, or "".
func beginning(file string) string {
	text := program()
	if via := os.Getenv(remote.EnvVia); via != "" {
		text += " --host " + settings.Quote(via)
	}
	if file != "" && file != owner.FileName && file != os.Getenv("HEARTBEAT_FILE") {
		text += " -f " + settings.Quote(file)
	}
	return text
}

// program is what a person types for this program: go run leaves none to type.
var program = sync.OnceValue(func() string {
	self, err := os.Executable()
	if err == nil && isGoRun(self) && !owner.Gone("cmd/heartbeat/main.go") {
		return "go run ./cmd/heartbeat"
	}
	return "heartbeat"
})

// isGoRun reports whether a program is one that go run has built.
func isGoRun(path string) bool {
	return strings.Contains(path, "/go-build") && filepath.Base(filepath.Dir(path)) == "exe"
}

// fleetCommands are the commands that are about a fleet, otherCommands the others.
const (
	fleetCommands = `answer|apply|approval|attach|backup|cancel|dead-letter|diff|doctor|edit|events|history|inbox|logs|next|notify|page|pause|recover|reload|replies|restart|restore|resume|run|screen|send|series|service|status|stop|trigger|unapply|usage|validate`
	otherCommands = `alive|completion|explain|help|init|launch|man|schema|simulate|version`
)

// commandLine finds command lines that begin with the program alone; if they are about a
// fleet, with a second group.
var commandLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bheartbeat (?:(` + fleetCommands + `)|` + otherCommands + `)\b`)
})

// withOurs gives the command lines in a text of ours the beginning that they need: the
// rooms that wrote them do not know it.
func withOurs(ours, text string) string {
	if ours == "" || ours == "heartbeat" || !strings.Contains(text, "heartbeat ") {
		return text
	}
	return commandLine().ReplaceAllStringFunc(text, func(line string) string {
		command := strings.TrimPrefix(line, "heartbeat ")
		switch {
		case line == "heartbeat run" && os.Getenv(remote.EnvVia) != "":
			return line // it stays in the foreground of its machine
		case commandLine().FindStringSubmatch(line)[1] == "":
			return program() + " " + command
		}
		return ours + " " + command
	})
}
