package memory

import (
	"errors"
	"time"

	"heartbeat/config"
)

// Resume ends pauses and holds that no run has in hand: those of the agents with
// these names, of all that are declared.
func Resume(stateDir string, agents []*config.Agent, names []string) error {
	known, err := Read(stateDir)
	if err != nil {
		return err
	}
	declared := known.Follow(agents, time.Now()).Declared()
	var errs []error
	var keys []string
	for _, name := range names {
		key := declared[name].Key
		keys = append(keys, key)
		errs = append(errs, KeepHold(stateDir, key, Hold{}))
	}
	return errors.Join(append(errs, KeepPauses(stateDir, keys, Pauses{}))...)
}
