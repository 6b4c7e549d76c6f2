package main

import (
	"os"
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
	text := "heartbeat"
	if via := os.Getenv(remote.EnvVia); via != "" {
		text += " --host " + settings.Quote(via)
	}
	if file != "" && file != owner.FileName && file != os.Getenv("HEARTBEAT_FILE") {
		text += " -f " + settings.Quote(file)
	}
	return text
}

// fleetCommands are the commands that are about a fleet, otherCommands the others.
const (
	fleetCommands = `answer|apply|approval|attach|cancel|dead-letter|diff|doctor|events|history|inbox|logs|next|notify|page|pause|recover|reload|replies|restart|resume|run|screen|send|series|service|status|stop|trigger|unapply|usage|validate`
	otherCommands = `alive|completion|explain|help|init|launch|man|schema|simulate|version`
)

// ofFleet finds command lines that are about a fleet and begin with the program alone.
var ofFleet = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bheartbeat (` + fleetCommands + `)\b`) })

// withOurs gives the command lines in a text of ours the beginning that they need: the
// rooms that wrote them do not know it.
func withOurs(ours, text string) string {
	if ours == "" || ours == "heartbeat" || !strings.Contains(text, "heartbeat ") {
		return text
	}
	return ofFleet().ReplaceAllStringFunc(text, func(line string) string {
		if line == "heartbeat run" && os.Getenv(remote.EnvVia) != "" {
			return line // it stays in the foreground of its machine
		}
		return ours + strings.TrimPrefix(line, "heartbeat")
	})
}
