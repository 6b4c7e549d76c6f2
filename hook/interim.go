package hook

import (
	"encoding/json"
	"strings"

	"heartbeat/hook/inbox"
)

// promptOf is the prompt of the entry in flight.
func promptOf(f *inbox.InFlight) string {
	var s string
	if json.Unmarshal([]byte(f.RawLine), &s) == nil {
		return s
	}
	var e struct {
		Prompt string `json:"prompt"`
	}
	if strings.HasPrefix(f.RawLine, `{"heartbeat"`) && json.Unmarshal([]byte(f.RawLine), &e) == nil {
		return e.Prompt
	}
	return strings.TrimSpace(f.RawLine)
}
