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

// settingsFolder is in the state directory: AGENT.json, what the live session's
// client is passed by --settings. It may hold what the agent's command passes.
const settingsFolder = "passed"

func (s *Spec) settingsFile() string {
	return filepath.Join(s.StateDir, settingsFolder, s.Agent+".json")
}

// keepSettings writes the file that the client is passed.
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

// dropSettings removes what an agent's client was passed: it reads it at its start
// only. Nobody may start one meanwhile.
func dropSettings(stateDir, agent string) error {
	err := os.Remove((&Spec{StateDir: stateDir, Agent: agent}).settingsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// told is what the client has told our status line last. The agent can write the
// file: what is in it counts where it is of the session's own conversation.
type told struct {
	last *client.StatusLine
	at   time.Time // of the file that was read last
}

// look reads it where it has changed.
func (t *told) look(home string, r *hook.Record, now time.Time) {
	at := hook.StatusLineAt(home)
	if at.IsZero() || at.Equal(t.at) || r.ClientSession == "" {
		return
	}
	t.at = at
	line, err := hook.ReadStatusLine(home, now)
	if err == nil && line != nil && line.SessionID == r.ClientSession {
		t.last = line
	}
}
