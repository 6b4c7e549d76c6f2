package memory

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/state"
)

// Pauses are the agents for which nothing may be started, by their keys:
// paused.json in the state directory.
type Pauses struct {
	Since map[string]time.Time `json:"since"`
	// By are the agents whose sessions asked for it.
	By map[string]string `json:"by,omitempty"`
}

func pausesPath(stateDir string) string { return filepath.Join(stateDir, "paused.json") }

// PausesError means that it is not known which agents are paused.
type PausesError struct{ Path, Why string }

// Error says why.
func (e *PausesError) Error() string { return "cannot tell which agents are paused: " + e.Why }

// Hint says what to do.
func (e *PausesError) Hint() string {
	return "rm " + e.Path + " runs all of them; `heartbeat pause` then holds those that are to wait"
}

// ReadPauses returns which agents are paused. The error is a *PausesError.
func ReadPauses(stateDir string) (Pauses, error) {
	var kept Pauses
	path := pausesPath(stateDir)
	if err := state.Load(path, &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pauses{}, &PausesError{path, err.Error()}
	}
	return kept, nil
}

// PausesOfRun is ReadPauses for a run that has the directories of its agents by
// now: who pauses an agent that no run has (PauseWithoutRun) has done so before, or
// is refused.
func PausesOfRun(stateDir string) (kept Pauses, err error) {
	err = locked(stateDir, func() error {
		kept, err = ReadPauses(stateDir)
		return err
	})
	return kept, err
}

// KeepPauses keeps the pauses of the agents with the given keys, all of them,
// beside those of others, which another run may hold.
func KeepPauses(stateDir string, keys []string, now Pauses) error {
	return locked(stateDir, func() error { return keep(stateDir, keys, now) })
}

// locked runs act while nobody else changes what is kept of pauses.
func locked(stateDir string, act func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, err := flock.Lock(ctx, filepath.Join(stateDir, ".paused-lock"))
	if err != nil {
		return &PausesError{pausesPath(stateDir), err.Error()}
	}
	return errors.Join(act(), unlock())
}

func keep(stateDir string, keys []string, now Pauses) error {
	kept, err := ReadPauses(stateDir)
	if err != nil {
		return err
	}
	if kept.Since == nil {
		kept.Since = map[string]time.Time{}
	}
	if kept.By == nil {
		kept.By = map[string]string{}
	}
	for _, key := range keys {
		delete(kept.Since, key)
		delete(kept.By, key)
	}
	maps.Copy(kept.Since, now.Since)
	maps.Copy(kept.By, now.By)
	return state.Save(pausesPath(stateDir), kept)
}

// Paused is since when an agent is paused, and by whose session; "": a person.
type Paused struct {
	Since time.Time
	By    string
}

// PausedOf returns which of the agents are paused, by name, whether or not a run
// holds them now. The error is a *PausesError if that cannot be determined; then
// no run can begin.
func PausedOf(stateDir string, agents []*config.Agent) (map[string]Paused, error) {
	kept, err := ReadPauses(stateDir)
	if err != nil || len(kept.Since) == 0 {
		return nil, err
	}
	known, err := Read(stateDir)
	if err != nil {
		known = nil // then each agent is identified by its name
	}
	paused := map[string]Paused{}
	for _, who := range known.Follow(agents, time.Now()) {
		if at, ok := kept.Since[who.Key]; ok && who.Gone.IsZero() {
			paused[who.Name] = Paused{at, kept.By[who.Key]}
		}
	}
	return paused, nil
}
