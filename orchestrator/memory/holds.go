package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/state"
)

// Hold is why no session of an agent is started, by this run and the next ones,
// until a person resumes it or its definition changes: holds/KEY.json in the state
// directory.
type Hold struct {
	Since time.Time `json:"since"`
	Held
	// Definition is that of the agent when it failed; see DefinitionOf.
	Definition string `json:"definition"`
}

// Held is why an agent is held; the zero value: it is not.
type Held struct {
	Why string `json:"why"`
	// Fix is what to change first, where that is known.
	Fix string `json:"fix,omitempty"`
	// Answers, if not "", were in place when a session's client asked a person at its start.
	// Then the hold also ends when they have changed, or at the next try.
	Answers string `json:"answers,omitempty"`
}

// DefinitionOf returns a hash that changes with an agent's definition. It also changes if a new
// version of this program knows more keys.
func DefinitionOf(a *config.Agent) string {
	b := a.Placeless()
	data, err := json.Marshal(b)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	return hashOf(string(data), hashOfAll(a.Triggers))
}

func holdPath(stateDir, key string) string { return filepath.Join(stateDir, "holds", key+".json") }

// KeepHold saves why the agent with a key is held. Without a Why it is not held.
func KeepHold(stateDir, key string, h Hold) error {
	path := holdPath(stateDir, key)
	if h.Why == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot forget that the agent was held: %w", err)
		}
		return nil
	}
	if err := state.Save(path, h); err != nil {
		return fmt.Errorf("cannot remember that the agent is held: %w", err)
	}
	return nil
}

// ReadHolds returns, by key, the agents that were held when their last run ended. With an error it
// returns those that can be read.
func ReadHolds(stateDir string) (map[string]Hold, error) {
	files, err := os.ReadDir(filepath.Dir(holdPath(stateDir, "")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read which agents are held: %w", err)
	}
	var errs []error
	holds := map[string]Hold{}
	for _, f := range files {
		key, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || strings.HasPrefix(key, ".") {
			continue
		}
		var h Hold
		if err := state.Load(holdPath(stateDir, key), &h); err != nil {
			errs = append(errs, err)
		} else if h.Why != "" {
			holds[key] = h
		}
	}
	return holds, errors.Join(errs...)
}
