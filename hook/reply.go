package hook

import (
	"crypto/sha256"
	"encoding/hex"

	"heartbeat/hook/client"
)

// When the model answers with nothing at all, a Stop's last_assistant_message is
// that of an earlier answer, perhaps of another entry (measured in 2.1.329). So a
// message that equals the one of the Stop before is checked against the transcript.

// ownReply drops a Stop's last message when it does not belong to this entry. The
// lock is released while it reads. It returns false when the lock, or the session,
// was lost meanwhile.
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
	flight := t.Own()
	if flight == nil {
		return true
	}
	_, look := t.facts(flight)
	t.exit()
	answered := look.Answered(client.Claude.Transcript.Behind)
	if !t.enter(turnPatience) {
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
