package session

import (
	"errors"
	"path/filepath"

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
	return remove((&Spec{StateDir: stateDir, Agent: agent}).settingsFile())
}
