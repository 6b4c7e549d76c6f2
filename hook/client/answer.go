package client

import (
	"bytes"
	"encoding/json"
)

// block is what a Stop hook prints to continue with a text, as JSON.
func block(text string) ([]byte, error) {
	return encode(struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}{"block", text})
}

// deny is the answer to a PermissionRequest: the model reads the message as the
// tool's result, and the turn continues (measured in 2.1.329).
func deny(message string) ([]byte, error) {
	type verdict struct {
		Behavior string `json:"behavior"`
		Message  string `json:"message"`
	}
	type output struct {
		Event    string  `json:"hookEventName"`
		Decision verdict `json:"decision"`
	}
	return encode(struct {
		Output output `json:"hookSpecificOutput"`
	}{output{PermissionRequest, verdict{"deny", message}}})
}

// encode returns JSON on one line, without the escapes for HTML: "<" stays "<".
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
