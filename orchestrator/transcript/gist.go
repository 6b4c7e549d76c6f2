package transcript

import (
	"encoding/json"
	"strings"

	"heartbeat/hook/foreign"
)

// telling are the arguments of tools that say what a call is about, the most telling first.
var telling = []string{"command", "file_path", "notebook_path", "pattern", "url", "query", "description", "skill", "subject", "prompt"}

// Gist returns what a call of a tool is about, as "git status" of a Bash, and the text of any
// other line. Of a tool that nobody knows it is the first argument that is a text.
func (l Line) Gist() foreign.Text {
	if l.Kind != Tool {
		return l.Text
	}
	first, found := "", map[string]string{}
	in := json.NewDecoder(strings.NewReader(l.Text.Raw()))
	if begin, err := in.Token(); err != nil || begin != json.Delim('{') {
		return l.Text
	}
	for in.More() { // until its end, or to where it was cut
		key, err := in.Token()
		name, is := key.(string)
		var value any
		if err != nil || !is || in.Decode(&value) != nil {
			break
		}
		if text, is := value.(string); is && text != "" {
			if found[name] = text; first == "" {
				first = text
			}
		}
	}
	for _, name := range telling {
		if found[name] != "" {
			return foreign.Text(found[name])
		}
	}
	if first == "" && l.Text != "{}" {
		return l.Text
	}
	return foreign.Text(first)
}
