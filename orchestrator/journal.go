package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// Event is one line of the journal: what happened to an agent, why, and what
// comes next.
type Event struct {
	At    time.Time `json:"at"`
	Agent string    `json:"agent,omitempty"`
	// Kind is one of: state, fired, skipped, trigger-failed, applied, ended,
	// recovered, swept, paused, resumed, reloaded, reload-failed, added,
	// removed, directory-lost, directory-found, queue-lost, stuck, trigger-anew, forgot, stopping. Readers
	// pass over those that they do not know.
	Kind    string    `json:"kind"`
	State   State     `json:"state,omitempty"`
	From    State     `json:"from,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Session string    `json:"session,omitempty"`
	Trigger string    `json:"trigger,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	// Started, Acknowledged and Why belong to ended: when the session was
	// started, how many entries it did, and which of the closed list its end was.
	Started      time.Time `json:"started,omitzero"`
	Acknowledged int       `json:"acknowledged,omitempty"`
	Why          hook.End  `json:"why,omitempty"`
	// Due belongs to fired: when a schedule wanted the prompt to be queued.
	Due time.Time `json:"due,omitzero"`
}

// The journal's files in the state directory. When the present one is full it
// takes the place of the old one.
const (
	journalFile = "journal.jsonl"
	journalOld  = "journal.1.jsonl"
	journalLock = ".journal-lock"
	journalMax  = 64 << 20
)

// journal appends events to journal.jsonl in the state directory. It is for
// reading; nothing is decided from it, so it is not synced. Several processes
// may write one journal.
type journal struct {
	dir string
	max int64

	mu   sync.Mutex
	f    *os.File
	torn bool // the last line may lack its end
}

// Journalled reports whether there is a journal, which a run begins first of
// all.
func Journalled(stateDir string) bool {
	_, err := os.Lstat(filepath.Join(stateDir, journalFile))
	return err == nil
}

func openJournal(stateDir string) (*journal, error) {
	j := &journal{dir: stateDir, max: journalMax}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	return j, nil
}

func (j *journal) open() error {
	f, err := os.OpenFile(filepath.Join(j.dir, journalFile), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if j.f != nil {
		_ = j.f.Close()
	}
	j.f = f
	j.torn, err = durable.Unterminated(f)
	return err
}

// add writes one event in one write(2) or not at all, so that readers see whole
// lines. What a writer that died left of a line is closed first.
func (j *journal) add(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.rotate(); err != nil {
		return fmt.Errorf("cannot rotate the journal: %w", err)
	}
	if line = append(line, '\n'); j.torn {
		line = append([]byte{'\n'}, line...)
	}
	if err := durable.WriteWhole(j.f, line); err != nil {
		j.torn, _ = durable.Unterminated(j.f) // what cannot be told is told by the next write
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	j.torn = false
	return nil
}

// rotate follows a file that another process has moved, and moves one that
// is full.
func (j *journal) rotate() error {
	path := filepath.Join(j.dir, journalFile)
	mine, err := j.f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(mine, named):
		return j.open()
	case err != nil:
		return err
	case mine.Size() < j.max:
		return nil
	}
	unlock, err := flock.TryLock(filepath.Join(j.dir, journalLock))
	if err != nil {
		return nil // another process is at it
	}
	defer func() { _ = unlock() }()
	if named, err := os.Lstat(path); err == nil && os.SameFile(mine, named) {
		if err := os.Rename(path, filepath.Join(j.dir, journalOld)); err != nil {
			return err
		}
	}
	return j.open()
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.f.Close()
}
