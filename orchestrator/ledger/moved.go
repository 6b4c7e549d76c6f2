package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/orchestrator/state"
)

// Inboxes returns the inboxes of whose entries it is recorded what they say or what they have
// to pass. With an error it returns those that it has found.
func Inboxes(stateDir string) (all []string, err error) {
	for _, kind := range []string{"texts", "demands"} {
		folders, failed := os.ReadDir(filepath.Join(stateDir, kind))
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("cannot read what is recorded of entries: %w", failed))
		}
		for _, f := range folders {
			if inbox := inboxIn(filepath.Join(stateDir, kind, f.Name())); inbox != "" && !slices.Contains(all, inbox) {
				all = append(all, inbox)
			}
		}
	}
	return all, err
}

// inboxIn returns the inbox that a folder of records is for; "" if no record tells.
func inboxIn(folder string) string {
	records, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return ""
	}
	for _, path := range records {
		records, _ := textsIn(func(v any) error { return state.Load(path, v) }) // a demand has the name of its inbox where a text has it
		for _, r := range records {
			if r.Inbox != "" && hashOf(r.Inbox, 8) == filepath.Base(folder) {
				return r.Inbox
			}
		}
	}
	return ""
}

// Move has what is recorded of entries of one inbox belong to another one. A demand that is
// recorded there stays; a text that differs from one there is unsure. When it is
// interrupted, call it again: each record is written before the old one is removed.
func Move(stateDir, from, to string, ids ...string) (err error) {
	for _, id := range ids {
		err = errors.Join(err, moveDemand(stateDir, from, to, id), moveText(stateDir, from, to, id))
	}
	return err
}

func moveDemand(stateDir, from, to, id string) error {
	d, err := DemandOf(stateDir, from, id)
	if d == nil || err != nil {
		return err
	}
	there, err := DemandOf(stateDir, to, id)
	if there == nil && err == nil {
		d.Inbox = to
		err = KeepDemand(stateDir, *d)
	}
	if err != nil {
		return err
	}
	return DropDemand(stateDir, from, id)
}

func moveText(stateDir, from, to, id string) error {
	t, err := textAt(stateDir, from, id)
	if t == nil || err != nil {
		return err
	}
	there, err := textAt(stateDir, to, id)
	if err != nil {
		return err
	}
	t.Inbox, t.Unsure = to, t.Unsure || there != nil && (there.Unsure || there.Text != t.Text)
	if err := state.Put(filepath.Join(textFolder(stateDir, to), textName(id)), *t); err != nil {
		return err
	}
	return DropTexts(stateDir, from, id)
}
