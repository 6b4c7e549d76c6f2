package memory

import (
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/store"
)

// ErrRuns means that a run has an agent: ask that run.
var ErrRuns = errors.New("it is locked by a run, which does not answer")

// PauseWithoutRun pauses agents of a fleet for its next run; see Paused.Again. If a run has one of
// them, nothing changes, and the error matches ErrRuns.
func PauseWithoutRun(c *store.Change, stateDir string, declared, agents []*config.Agent, asked Paused) error {
	return withoutRun(c, stateDir, declared, agents, asked.Since, func(keys []string) error {
		kept, err := ReadPauses(stateDir)
		if err != nil {
			return err
		}
		for _, key := range keys {
			kept.Set(key, kept.Of(key, asked.Since).Again(asked))
		}
		return keep(stateDir, keys, kept)
	})
}

// ResumeWithoutRun ends the pauses and holds of agents of a fleet, for its next run.
// Its errors are those of PauseWithoutRun.
func ResumeWithoutRun(c *store.Change, stateDir string, declared, agents []*config.Agent, now time.Time) error {
	return withoutRun(c, stateDir, declared, agents, now, func(keys []string) error {
		var errs []error
		for _, key := range keys {
			errs = append(errs, KeepHold(stateDir, key, Hold{}))
		}
		return errors.Join(append(errs, keep(stateDir, keys, Pauses{}))...)
	})
}

// withoutRun runs act with the keys of agents, unless a run has one of them. A run that begins
// meanwhile waits for it (PausesOfRun).
func withoutRun(c *store.Change, stateDir string, declared, agents []*config.Agent, now time.Time, act func(keys []string) error) error {
	return locked(stateDir, func() error {
		for _, a := range agents {
			if flock.Held(a.Dir) {
				return fmt.Errorf("the directory of agent %q: %w", a.Name, ErrRuns)
			}
		}
		known, err := Note(c, stateDir, declared, nil, now)
		if err != nil {
			return err
		}
		names := known.Declared()
		keys := make([]string, len(agents))
		for i, a := range agents {
			keys[i] = names[a.Name].Key
		}
		return act(keys)
	})
}
