package memory

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/state"
)

// Pauses are the paused agents, by key: paused.json in the state directory.
type Pauses struct {
	Since map[string]time.Time `json:"since"`
	// Until are the ends of pauses that end by themselves.
	Until map[string]time.Time `json:"until,omitempty"`
	// By are the agents whose sessions asked for the pauses.
	By map[string]string `json:"by,omitempty"`
}

// Of returns the present pause of the agent with a key; the zero value: it is not paused.
func (p Pauses) Of(key string, now time.Time) Paused {
	return Paused{p.Since[key], p.Until[key], p.By[key]}.at(now)
}

// Set pauses the agent with a key; with the zero value it is not paused.
func (p *Pauses) Set(key string, q Paused) {
	delete(p.Since, key)
	delete(p.Until, key)
	delete(p.By, key)
	if q.Since.IsZero() {
		return
	}
	if p.Since == nil {
		p.Since = map[string]time.Time{}
	}
	p.Since[key] = q.Since
	if !q.Until.IsZero() {
		if p.Until == nil {
			p.Until = map[string]time.Time{}
		}
		p.Until[key] = q.Until
	}
	if q.By != "" {
		if p.By == nil {
			p.By = map[string]string{}
		}
		p.By[key] = q.By
	}
}

// lockWait is how long the lock of the pauses is waited for.
const lockWait = 5 * time.Second

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

// PausesOfRun is ReadPauses for a run that has locked its agents' directories. A PauseWithoutRun for
// one of them is done by then, or is refused.
func PausesOfRun(stateDir string) (kept Pauses, err error) {
	err = locked(stateDir, func() error {
		kept, err = ReadPauses(stateDir)
		return err
	})
	return kept, err
}

// KeepPauses saves the pauses of all agents with the given keys. The pauses of other agents, which
// another run may have, stay as they are.
func KeepPauses(stateDir string, keys []string, now Pauses) error {
	return locked(stateDir, func() error { return keep(stateDir, keys, now) })
}

// locked runs act with the lock of the pauses held.
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
	for _, key := range keys {
		kept.Set(key, Paused{now.Since[key], now.Until[key], now.By[key]})
	}
	return state.Save(pausesPath(stateDir), kept)
}

// Paused is a pause of an agent or a trigger; the zero value: there is none.
type Paused struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"` // when it ends by itself; zero: it does not
	By    string    `json:"by,omitempty"`   // the agent whose session asked for it; "": a person did
}

// Over reports whether a pause has ended by itself.
func (p Paused) Over(now time.Time) bool { return !p.Until.IsZero() && deadline.Over(p.Until, now) }

// Again returns the pause that results when another one is requested: the new one, except that the
// first of two pauses without an end stays, and a session shortens no pause of others.
func (p Paused) Again(asked Paused) Paused {
	switch {
	case p.Since.IsZero() || p.Over(asked.Since):
		return asked
	case p.Until.IsZero() && (asked.Until.IsZero() || asked.By != ""),
		asked.By != "" && !asked.Until.IsZero() && asked.Until.Before(p.Until):
		return p
	}
	return asked
}

// at returns what is left of a pause that was read from disk. If the clock was set back, the pause
// lasts no longer from now on than it was to last in all.
func (p Paused) at(now time.Time) Paused {
	if p.Since.IsZero() || p.Until.IsZero() {
		return p
	}
	if p.Until = deadline.On(p.Until, now, p.Until.Sub(p.Since)); p.Over(now) {
		return Paused{}
	}
	return p
}

// PausedOf returns which of the agents are paused, by name, whether or not a run
// holds them now. The error is a *PausesError if that cannot be determined; then
// no run can begin.
func PausedOf(stateDir string, agents []*config.Agent) (map[string]Paused, error) {
	kept, err := ReadPauses(stateDir)
	if err != nil || len(kept.Since) == 0 {
		return nil, err
	}
	now := time.Now()
	known, err := ReadIn(stateDir)
	if err != nil {
		known = nil // so that each agent is identified by its name
	}
	paused := map[string]Paused{}
	for _, who := range known.Follow(agents, now) {
		if p := kept.Of(who.Key, now); !p.Since.IsZero() && who.Gone.IsZero() {
			paused[who.Name] = p
		}
	}
	return paused, nil
}
