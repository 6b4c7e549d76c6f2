package settings

import (
	"encoding/json"

	"heartbeat/hook/ask"
)

// StatusLine returns the command line of a settings file's status line; "" if it
// has none, or is not a settings file.
func StatusLine(src []byte) string {
	line, err := statusLine(src)
	if err != nil || line.Type != "command" {
		return ""
	}
	return line.Command
}

type shownLine struct{ Type, Command string }

func statusLine(src []byte) (shownLine, error) {
	var l shownLine
	d, err := read(src)
	if err != nil {
		return l, err
	}
	if v := d.root.find("statusLine"); v != nil {
		err = json.Unmarshal(d.src[v.start:v.end], &l)
	}
	return l, err
}

// StatusLineCommand returns the command line of our status line for a binary. theirs is the
// status line that it replaces, or "".
func StatusLineCommand(binary, theirs string) string {
	command := "exec " + Quote(binary) + " " + ask.Word + " " + ask.StatusLine
	if theirs != "" {
		command += " " + Quote(theirs)
	}
	return command
}
