package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// Document is what the client makes of the bytes of a settings file at its start.
type Document struct {
	// Broken is why the client cannot read it at all.
	Broken string
	// Refused are entries that the client asks a person about, Unknown are hook
	// events that the measured client does not know.
	Refused, Unknown []string
	// Idle are permission rules that never match.
	Idle             []string
	SkipBypassDialog bool
	KeyHelper        bool
	AllServers       bool
	Servers          []string // of .mcp.json, that are decided on
}

// Document reads the settings as the client does.
func (s Settings) Document() Document { return ReadDocument(s.Data, s.Err) }

// ReadDocument reads the bytes of a settings file; err is why there are none, or
// why they are not settings.
func ReadDocument(data []byte, err error) Document {
	if data == nil && err != nil {
		return Document{Broken: err.Error()}
	}
	var d Document
	d.read(data)
	if err != nil && d.Broken == "" && len(d.Refused) == 0 {
		d.Refused = append(d.Refused, err.Error())
	}
	return d
}

// content is what a settings file may contain, as far as the client opens a dialog
// about it: each of these was seen to cause one (unknown keys were not).
type content struct {
	Hooks       map[string]json.RawMessage `json:"hooks"`
	Permissions map[string]json.RawMessage `json:"permissions"`
	Env         map[string]any             `json:"env"`
	Model       *string                    `json:"model"`

	SkipBypass bool     `json:"skipDangerousModePermissionPrompt"`
	KeyHelper  string   `json:"apiKeyHelper"`
	AllServers bool     `json:"enableAllProjectMcpServers"`
	Enabled    []string `json:"enabledMcpjsonServers"`
	Disabled   []string `json:"disabledMcpjsonServers"`
}

// read fills s from a settings file's bytes.
func (s *Document) read(data []byte) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return
	}
	if err := foreign.CheckJSON(data); err != nil {
		s.Broken = err.Error()
		return
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		s.Broken = "it is not strict JSON: " + err.Error()
		return
	}
	var d content
	// Each key is read by itself, so that a wrong one hides no other.
	for _, key := range slices.Sorted(maps.Keys(all)) {
		one, err := json.Marshal(map[string]json.RawMessage{key: all[key]})
		if err == nil {
			err = json.Unmarshal(one, &d)
		}
		if err != nil && known(key) {
			s.refuse("%s: has the wrong type", key)
		}
	}
	s.SkipBypassDialog, s.KeyHelper, s.AllServers = d.SkipBypass, d.KeyHelper != "", d.AllServers
	s.Servers = append(d.Enabled, d.Disabled...)
	for _, event := range slices.Sorted(maps.Keys(d.Hooks)) {
		if !client.Claude.Hooks.Has(event) {
			s.Unknown = append(s.Unknown, event)
			continue
		}
		s.readGroups(event, d.Hooks[event])
	}
	s.readPermissions(d.Permissions)
}

func known(key string) bool {
	return slices.Contains([]string{"hooks", "permissions", "env", "model"}, key)
}

func (s *Document) refuse(format string, args ...any) {
	s.Refused = append(s.Refused, fmt.Sprintf(format, args...))
}

func (s *Document) readGroups(event string, data []byte) {
	var groups []struct {
		Matcher *json.RawMessage   `json:"matcher"`
		Hooks   *[]json.RawMessage `json:"hooks"`
	}
	if json.Unmarshal(data, &groups) != nil {
		s.refuse("hooks.%s: must be an array of {matcher, hooks}", event)
		return
	}
	for i, g := range groups {
		place := fmt.Sprintf("hooks.%s[%d]", event, i)
		if g.Matcher != nil && !bytes.HasPrefix(*g.Matcher, []byte{'"'}) {
			s.refuse("%s.matcher: must be a text", place)
		}
		if g.Hooks == nil {
			s.refuse("%s.hooks: is missing", place)
			continue
		}
		for j, raw := range *g.Hooks {
			s.readHook(fmt.Sprintf("%s.hooks[%d]", place, j), raw)
		}
	}
}

func (s *Document) readHook(place string, data []byte) {
	var h struct {
		Type    string           `json:"type"`
		Command *string          `json:"command"`
		Timeout *json.RawMessage `json:"timeout"`
	}
	if json.Unmarshal(data, &h) != nil {
		s.refuse("%s: is not a hook", place)
		return
	}
	if !slices.Contains(client.Claude.Hooks.Types, h.Type) {
		s.refuse("%s.type: %q is not known", place, h.Type)
	}
	if h.Type == "command" && h.Command == nil {
		s.refuse("%s.command: is missing", place)
	}
	if h.Timeout == nil {
		return
	}
	var seconds float64
	if json.Unmarshal(*h.Timeout, &seconds) != nil || seconds <= 0 {
		s.refuse("%s.timeout: %s is not a positive number", place, *h.Timeout)
	}
}

func (s *Document) readPermissions(p map[string]json.RawMessage) {
	for _, list := range []string{"allow", "ask", "deny"} {
		if p[list] == nil {
			continue
		}
		var rules []string
		if json.Unmarshal(p[list], &rules) != nil {
			s.refuse("permissions.%s: must be an array of texts", list)
		}
		for _, r := range rules {
			switch wrong := client.Claude.Settings.CheckRule(r, list == "allow"); {
			case wrong == nil:
			case wrong.Refused:
				s.refuse("permissions.%s: %q is refused: %s", list, r, wrong.Message)
			default:
				s.Idle = append(s.Idle, fmt.Sprintf("permissions.%s: %q never matches: %s", list, r, wrong.Message))
			}
		}
	}
	if raw := p["defaultMode"]; raw != nil {
		var mode string
		if json.Unmarshal(raw, &mode) != nil || !slices.Contains(client.Claude.Modes, mode) {
			s.refuse("permissions.defaultMode: %s is not a mode", raw)
		}
	}
}
