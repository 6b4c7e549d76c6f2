package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// StatusLineCommand returns the command line of our status line, by the command
// line of our hooks. theirs is the status line that it replaces, or "".
func StatusLineCommand(hooks, theirs string) string {
	command := hooks + " status-line"
	if theirs != "" {
		command += " " + Quote(theirs)
	}
	return command
}

// WithStatusLine returns a settings file with another status line in place of its
// own. It is for the client alone: order and blanks differ from src.
func WithStatusLine(src []byte, command string) ([]byte, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(bytes.TrimPrefix(d.src, bom), &all); err != nil {
		return nil, err
	}
	kept := map[string]json.RawMessage{} // for example its padding
	if all["statusLine"] != nil {
		if err := json.Unmarshal(all["statusLine"], &kept); err != nil || kept == nil {
			kept = map[string]json.RawMessage{}
		}
	}
	kept["type"] = json.RawMessage(`"command"`)
	if kept["command"], err = json.Marshal(command); err != nil {
		return nil, fmt.Errorf("cannot render the status line: %w", err)
	}
	if all["statusLine"], err = json.Marshal(kept); err != nil {
		return nil, fmt.Errorf("cannot render the status line: %w", err)
	}
	return json.MarshalIndent(all, "", "  ")
}
