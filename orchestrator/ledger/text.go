package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/orchestrator/state"
)

// Text is what an entry says that has to be proven and has not ended: as its sender gave
// it, or as it was first seen in its inbox. The agent can write the inbox.
type Text struct {
	// ID is the entry's; one without an id is known by Entry, the hash of its line.
	ID    string `json:"id,omitempty"`
	Entry string `json:"entry,omitempty"`
	Inbox string `json:"inbox"`
	Text  string `json:"text"`
}

func textFolder(stateDir, inbox string) string {
	return filepath.Join(stateDir, "texts", filepath.Base(demandFolder("", inbox)))
}

func textPath(stateDir string, t Text) string {
	key := "id " + t.ID
	if t.ID == "" {
		key = "line " + t.Entry
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(textFolder(stateDir, t.Inbox), hex.EncodeToString(sum[:16])+".json")
}

// KeepText records what an entry says. It is not synced: what a power cut takes away is
// read in the inbox again, before any session of the agent lives.
func KeepText(stateDir string, t Text) error {
	if err := state.Put(textPath(stateDir, t), t); err != nil {
		return fmt.Errorf("cannot record what an entry says: %w", err)
	}
	return nil
}

// TextOf returns what is recorded of the entry with an id or, without one, with a line;
// nil: nothing is. Only those fields of t and Inbox are read.
func TextOf(stateDir string, t Text) (*Text, error) {
	var known Text
	err := state.Load(textPath(stateDir, t), &known)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, state.ErrDamaged):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot tell what an entry says: %w", err)
	case known.ID != t.ID || t.ID == "" && known.Entry != t.Entry:
		return nil, nil
	}
	return &known, nil
}

// DropText forgets what an entry says.
func DropText(stateDir string, t Text) error {
	if err := os.Remove(textPath(stateDir, t)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget what an entry says: %w", err)
	}
	return nil
}

// Texts returns what is recorded of the entries of an inbox. With an error they are those
// that can be read.
func Texts(stateDir, inbox string) (all []Text, err error) {
	folder := textFolder(stateDir, inbox)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		var t Text
		switch err := state.Load(filepath.Join(folder, e.Name()), &t); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, state.ErrDamaged):
		case err != nil:
			errs = append(errs, err)
		case t.Inbox == inbox && (t.ID != "" || t.Entry != ""):
			all = append(all, t)
		}
	}
	return all, errors.Join(errs...)
}
