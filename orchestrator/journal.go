package orchestrator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Event is one line of the journal: what happened to an agent, why, and what
// comes next.
type Event struct {
	At      time.Time `json:"at"`
	Agent   string    `json:"agent,omitempty"`
	Kind    string    `json:"kind"` // state, fired, recovered, ended, applied, swept
	State   State     `json:"state,omitempty"`
	From    State     `json:"from,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Session string    `json:"session,omitempty"`
	Trigger string    `json:"trigger,omitempty"`
	Detail  string    `json:"detail,omitempty"`
}

// journal appends events to journal.jsonl in the state directory. It is for
// reading; nothing is decided from it, so it is not synced.
type journal struct {
	mu sync.Mutex
	f  *os.File
}

func openJournal(stateDir string) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(stateDir, "journal.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	return &journal{f: f}, nil
}

// add writes one event in one write(2), so that readers see whole lines.
func (j *journal) add(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	return nil
}

func (j *journal) close() error { return j.f.Close() }
