package hook

import (
	"encoding/json"
	"fmt"
)

// Terms are what a session was started for. Its shim gives them to its hooks in
// their environment (EnvTerms), where what the agent writes does not change them.
type Terms struct {
	Agent   string `json:"agent"`
	Session string `json:"session"` // our id; also the client's --session-id
	// Conversation is the client's that the session was started with: its own
	// or the one that it goes on with.
	Conversation string `json:"conversation,omitempty"`
	Inbox        string `json:"inbox"`
	Policy       Policy `json:"policy"`
}

// Variable is what the shim sets in the session's environment.
func (t Terms) Variable() string {
	data, err := json.Marshal(t)
	if err != nil { // it holds words and numbers only
		panic(err)
	}
	return EnvTerms + "=" + string(data)
}

// termsOf reads the session's terms; nil where its shim is of a version that
// gave none.
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

// record is the record that hooks of a session with these terms act on. What was
// settled at its start is never taken from the file.
func (t *Terms) record(s *Shown) *Record {
	r := Record(*s)
	if t != nil {
		r.Terms = *t
	}
	return &r
}
