package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/durable"
)

// Talk is the conversation of an agent's live session, or of its last one.
type Talk struct {
	Session string `json:"session"`
	// Transcript is where the client says that it keeps it, "" until it does. The agent can
	// forge it.
	Transcript string `json:"transcript,omitempty"`
}

// maxTalk bounds what is read of one.
const maxTalk = 64 << 10

// talkPath is where the talk of the agent with this .heartbeat folder is noted: the folder stays
// where the agent gets another name.
func talkPath(stateDir, home string) string {
	sum := sha256.Sum256([]byte(home))
	return filepath.Join(stateDir, "talks", hex.EncodeToString(sum[:8])+".json")
}

// TalkOf returns the talk of the agent with this .heartbeat folder, for display; nil: none is
// known.
func TalkOf(stateDir, home string) (*Talk, error) {
	data, err := durable.Read(talkPath(stateDir, home), maxTalk)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	t := new(Talk)
	if err == nil {
		err = json.Unmarshal(data, t)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Note keeps the talk of the agent with this .heartbeat folder in the state directory.
func (t Talk) Note(stateDir, home string) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	path := talkPath(stateDir, home)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(path, data)
}

// keepTalk notes the session's, where it is another one than was noted last.
func (s *shim) keepTalk(now time.Time) {
	t := Talk{Session: s.spec.Session, Transcript: s.record.Transcript}
	if t == s.talk {
		return
	}
	if err := t.Note(s.spec.StateDir, s.spec.Home); err != nil {
		s.failed.about("cannot note where the session's conversation is kept", err, now)
		return
	}
	s.talk = t
}
