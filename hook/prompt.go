package hook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"heartbeat/hook/inbox"
)

// promptOf is the prompt of the entry in flight, read from its line as
// hook/inbox reads it when it hands it over.
func promptOf(f *inbox.InFlight) string {
	raw := []byte(f.RawLine)
	if f.RawBase64 != "" {
		if bytes, err := base64.StdEncoding.DecodeString(f.RawBase64); err == nil {
			raw = bytes
		}
	}
	if f.StartOffset == 0 {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	line := bytes.TrimSpace(raw)
	var text string
	if json.Unmarshal(line, &text) == nil && bytes.HasPrefix(line, []byte(`"`)) {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var envelope struct {
		Heartbeat json.Number `json:"heartbeat"`
		Prompt    *string     `json:"prompt"`
	}
	if firstKey(line) == "heartbeat" && json.Unmarshal(line, &envelope) == nil &&
		envelope.Heartbeat == "1" && envelope.Prompt != nil {
		return strings.ToValidUTF8(*envelope.Prompt, "\uFFFD")
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}

// firstKey is the first key of a JSON object, or "".
func firstKey(line []byte) string {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	t, err := dec.Token()
	if err != nil {
		return ""
	}
	key, _ := t.(string)
	return key
}
