package settings

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Session is what a session's client is told in addition to a settings file, for that
// session alone.
type Session struct {
	// StatusLine is a command line.
	StatusLine string
	// Deny are rules, Env variables as NAME=VALUE: what the file says of them does not
	// count, nor what the client reads elsewhere, but for an administrator's.
	Deny, Env []string
}

// ForSession returns a settings file for one session: with another status line in place
// of its own, and more rules and variables. It is for the client alone: order and blanks
// differ from src.
func ForSession(src []byte, s Session) ([]byte, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	if _, err := d.permissions(); err != nil {
		return nil, err
	}
	if _, err := d.env(); err != nil {
		return nil, err
	}
	all := kept(bytes.TrimPrefix(d.src, bom))
	line := kept(all["statusLine"]) // for example its padding
	line["type"], line["command"] = encoded("command"), encoded(s.StatusLine)
	all["statusLine"] = encoded(line)
	if len(s.Deny) > 0 {
		permissions := kept(all["permissions"])
		var rules []json.RawMessage
		_ = json.Unmarshal(permissions["deny"], &rules) // where there are none
		for _, rule := range s.Deny {
			rules = append(rules, encoded(rule))
		}
		permissions["deny"] = encoded(rules)
		all["permissions"] = encoded(permissions)
	}
	if len(s.Env) > 0 {
		env := kept(all["env"])
		for _, kv := range s.Env {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = encoded(value)
		}
		all["env"] = encoded(env)
	}
	return json.MarshalIndent(all, "", "  ")
}

// kept returns the members of an object, none where it is something else.
func kept(raw []byte) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &all) != nil || all == nil {
		return map[string]json.RawMessage{}
	}
	return all
}

// encoded returns a text, or what is JSON already, as JSON.
func encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // neither can fail
	return raw
}
