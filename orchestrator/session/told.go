package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
)

// settingsFolder is in the state directory. AGENT.json is what the live session's
// client gets by --settings, which may include what the agent's command passes.
const settingsFolder = "passed"

func (s *Spec) settingsFile() string {
	return filepath.Join(s.StateDir, settingsFolder, s.Agent+".json")
}

// keepSettings writes the file that the client gets.
func (s *shim) keepSettings() error {
	if s.spec.Settings == nil {
		return nil
	}
	folder, err := durable.MakeBelow(s.spec.StateDir, filepath.Dir(s.spec.settingsFile()))
	if err != nil {
		return err
	}
	return errors.Join(folder.Put(filepath.Base(s.spec.settingsFile()), s.spec.Settings), folder.Close())
}

// dropSettings removes what an agent's client got: the client reads it only at its
// start. No client of the agent may be started meanwhile.
func dropSettings(stateDir, agent string) error {
	err := os.Remove((&Spec{StateDir: stateDir, Agent: agent}).settingsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// told is what the client last told our status line. The agent can write the file:
// it counts only if it is about the session's own conversation.
type told struct {
	last *client.StatusLine
	// at and file are of the file that was read last: where times are coarse, two have the same.
	at   time.Time
	file durable.Stamp
}

// look reads it where it has changed.
func (t *told) look(home string, r *hook.Record, now time.Time) {
	at, file := hook.StatusLineAt(home)
	if at.IsZero() || t.file.Same(file) || r.ClientSession == "" {
		return
	}
	line, err := hook.ReadStatusLine(home, now)
	if again, _ := hook.StatusLineAt(home); !again.Equal(at) {
		return // what was read may be newer than that time; the next look reads it
	}
	t.at, t.file = at, file
	if err == nil && line != nil && line.SessionID == r.ClientSession {
		t.last = line
	}
}

// signs follow what the session says about itself by `heartbeat alive`.
type signs struct {
	fileAt   time.Time // of the file that was read last
	lookedAt time.Time
	last     *Said
	on       string // what was in work then
}

// Said is what a session has said about itself while it works on an entry.
type Said struct {
	At   time.Time `json:"at"`
	Text string    `json:"text,omitempty"`
}

// signEvery is how often a session may say something.
const signEvery = time.Second

// look reads it where it has changed.
func (s *signs) look(home string, r *hook.Record, now time.Time) {
	if s.last != nil && s.on != workOf(r) { // it was said about another entry
		s.last = nil
	}
	if now.Sub(s.lookedAt) < signEvery {
		return
	}
	s.lookedAt = now
	at := hook.SignAt(home)
	if at.IsZero() || at.Equal(s.fileAt) {
		return
	}
	s.fileAt = at
	sign, err := hook.ReadSign(home)
	if err == nil && sign != nil && sign.Session == r.Session {
		s.last, s.on = &Said{now, sign.Text}, workOf(r)
	}
}

func (s *signs) at() time.Time {
	if s.last == nil {
		return time.Time{}
	}
	return s.last.At
}

func workOf(r *hook.Record) string { return ofWork(r.Work).Delivery }
