package hook

import (
	"crypto/sha256"
	"encoding/hex"

	"heartbeat/hook/client"
)

// When the model has answered with nothing at all, a Stop's
// last_assistant_message is that of an earlier answer, of another entry's maybe
// (measured in 2.1.329). One that says what the Stop before has said is looked
// for in the transcript.

// ownReply drops the last message of a Stop when it is none of this entry's. The
// lock is not held while we look. It is false when the lock, or the session, was
// lost meanwhile.
func (t *tick) ownReply() bool {
	if t.event.Name != client.Stop || t.event.AgentID != "" || t.event.LastMessage == "" {
		return true
	}
	r, said := t.Record, digest(t.event.LastMessage)
	suspect := said == r.Said || r.Said == "" && r.Policy.Context == ContextResume
	r.Said = said
	if !suspect || r.HandOvers != t.handOvers {
		return true
	}
	flight, err := t.InFlight()
	if err != nil || flight == nil || flight.Session != r.Session {
		return true
	}
	_, look := t.facts(flight)
	t.exit()
	answered := look.Answered(client.Claude.Transcript.Behind)
	if !t.enter(lockPatience) {
		return false
	}
	if t.Record.Said = said; !answered {
		t.event.LastMessage = ""
	}
	return true
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
