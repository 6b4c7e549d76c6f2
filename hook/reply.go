package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

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
	answered := look.answered(client.Claude.Transcript.Behind)
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

// answered looks until the transcript holds words of the agent behind the
// hand-over, or patience is over. Where it does not hold the hand-over nothing
// can be told, and it is true.
func (h handover) answered(patience time.Duration) bool {
	deadline := time.Now().Add(patience)
	for handed := false; ; {
		answered, next := false, h.offset
		err := eachLine(h.path, h.offset, func(line []byte, end int64) bool {
			next = end
			if !handed {
				handed = h.matches(line)
				return true
			}
			answered = speaks(line)
			return !answered
		})
		switch {
		case answered || err != nil && !errors.Is(err, fs.ErrNotExist): // the client makes it behind its first turns, maybe
			return true
		case !time.Now().Add(lookAgain).Before(deadline):
			return !handed
		}
		h.offset = next
		time.Sleep(lookAgain)
	}
}

// speaks reports whether a line of the transcript is words of the agent.
func speaks(line []byte) bool {
	_, words, _ := client.Claude.Transcript.Answered(line)
	return slices.ContainsFunc(words, func(text string) bool { return strings.TrimSpace(text) != "" })
}
