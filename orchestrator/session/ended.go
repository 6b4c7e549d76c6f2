package session

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"heartbeat/hook"
	"heartbeat/hook/durable"
)

// A shim whose scheduler is gone can tell nobody how its session ended: the next
// scheduler reads it from the state directory. The session record is no evidence
// for it.

// endedFolder is in the state directory: AGENT.json for each agent.
const endedFolder = "ended"

// keepOutcome records how the session ended.
func (s *shim) keepOutcome(o *Outcome) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	folder, err := durable.MakeBelow(s.spec.StateDir, filepath.Join(s.spec.StateDir, endedFolder))
	if err != nil {
		return err
	}
	return errors.Join(folder.Put(s.spec.Agent+".json", data), folder.Close())
}

// dropOutcome forgets how the previous session ended.
func (s *shim) dropOutcome() error {
	folder, err := durable.OpenBelow(s.spec.StateDir, filepath.Join(s.spec.StateDir, endedFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(folder.Remove(s.spec.Agent+".json"), folder.Close())
}

// maxOutcome limits what is read of it.
const maxOutcome = 1 << 20

// LastOutcome returns how an agent's last session ended, as far as that is known:
// if its shim recorded nothing, it crashed.
func LastOutcome(stateDir, agent string) Outcome {
	o := Outcome{Why: hook.EndCrashed, Bound: true}
	folder, err := durable.OpenBelow(stateDir, filepath.Join(stateDir, endedFolder))
	if err != nil {
		return o
	}
	defer folder.Close()
	var kept Outcome
	data, err := folder.Read(agent+".json", maxOutcome)
	if err == nil && json.Unmarshal(data, &kept) == nil && kept.Why != "" {
		return kept
	}
	return o
}
