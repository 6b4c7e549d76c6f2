package hook

import (
	"encoding/json"
	"fmt"
)

// Terms are what a session was started with. Its shim passes them to its hooks in
// their environment (EnvTerms), where the agent's writes cannot change them.
type Terms struct {
	Agent   string `json:"agent"`
	Session string `json:"session"` // our id; also the client's --session-id
	// Conversation is the client's conversation that the session was started with:
	// a new one, or the one that it continues.
	Conversation string `json:"conversation,omitempty"`
	Inbox        string `json:"inbox"`
	Policy       Policy `json:"policy"`
	// Runtime is the directory of its scheduler's sockets, "" for none: a session may have
	// another HOME, and would look for them elsewhere.
	Runtime string `json:"runtime,omitempty"`
}

// RuntimeOf returns Terms.Runtime for a process of a session, "" for any other one.
func RuntimeOf(getenv func(string) string) string {
	t, err := termsOf(getenv)
	if t == nil || err != nil {
		return ""
	}
	return t.Runtime
}

// Variable returns the environment variable that the shim sets for the session.
func (t Terms) Variable() string {
	data, err := json.Marshal(t)
	if err != nil { // it holds words and numbers only
		panic(err)
	}
	return EnvTerms + "=" + string(data)
}

// termsOf reads the session's terms; nil when its shim is of an older version that
// passed none.
func termsOf(getenv func(string) string) (*Terms, error) {
	text := getenv(EnvTerms)
	if text == "" {
		return nil, nil
	}
	t := new(Terms)
	if err := json.Unmarshal([]byte(text), t); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", EnvTerms, err)
	}
	return t, nil
}

// record returns the record that the hooks of a session with these terms act on.
// What was settled at its start is never taken from the file.
func (t *Terms) record(s *Shown) *Record {
	r := Record(*s)
	if t != nil {
		r.Terms = *t
	}
	return &r
}
