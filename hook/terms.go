package hook

// Terms are what a session was started with.
type Terms struct {
	Agent   string `json:"agent"`
	Session string `json:"session"` // our id; also the client's --session-id
	// Conversation is the client's conversation that the session was started with:
	// a new one, or the one that it continues.
	Conversation string `json:"conversation,omitempty"`
	Inbox        string `json:"inbox"`
	Policy       Policy `json:"policy"`
}
