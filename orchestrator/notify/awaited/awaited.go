// Package awaited keeps who waits for the reply to which prompt: in the state
// directory, out of the agents' reach, because what an agent writes must not decide
// where its words go.
package awaited

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/state"
)

// Reply is one that somebody waits for: that to the prompt ID of an agent, for a
// target.
type Reply struct {
	Agent  string    `json:"agent"`
	ID     string    `json:"id"`
	Target string    `json:"target"`
	At     time.Time `json:"at"`
	// Due is when the prompt is sent, if that is later: what comes before is not its reply.
	Due time.Time `json:"due,omitzero"`
	// Before is true if the prompt was queued before its reply was asked for.
	Before bool `json:"before,omitzero"`
}

// From is since when the reply is waited for.
func (r Reply) From() time.Time {
	if r.Due.After(r.At) {
		return r.Due
	}
	return r.At
}

const folder = "awaited"

func (r Reply) file() string {
	sum := sha256.Sum256([]byte(r.Agent + "\x00" + r.ID + "\x00" + r.Target))
	return hex.EncodeToString(sum[:12]) + ".json"
}

// Add notes, durably, that somebody waits. The same one twice is one.
func Add(stateDir string, r Reply) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot note who waits for the reply: %w", err)
		}
	}()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := durable.Open(stateDir)
	if err != nil {
		return err
	}
	defer f.Close()
	list, err := f.MakeSub(folder)
	if err != nil {
		return err
	}
	defer list.Close()
	if err := f.Sync(); err != nil { // the folder may be new
		return err
	}
	return list.Replace(r.file(), append(data, '\n'))
}

// Waits reports whether somebody waits for the reply already.
func Waits(stateDir string, r Reply) bool {
	_, err := os.Lstat(filepath.Join(stateDir, folder, r.file()))
	return err == nil
}

// Remove forgets one.
func Remove(stateDir string, r Reply) error {
	err := os.Remove(filepath.Join(stateDir, folder, r.file()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Forget removes all who wait for the reply to a prompt.
func Forget(stateDir, agent, id string) error {
	all, err := All(stateDir)
	for _, r := range all {
		if r.Agent == agent && r.ID == id {
			err = errors.Join(err, Remove(stateDir, r))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot forget who waits for the reply: %w", err)
	}
	return nil
}

// All returns those that somebody waits for, at most durable.MaxEntries; a file that
// cannot be read is passed over.
func All(stateDir string) ([]Reply, error) {
	f, err := durable.Open(filepath.Join(stateDir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Entries()
	if err != nil {
		return nil, err
	}
	var all []Reply
	for _, e := range names {
		var r Reply
		if filepath.Ext(e.Name()) == ".json" && state.Load(filepath.Join(f.Path(), e.Name()), &r) == nil && r.file() == e.Name() {
			all = append(all, r)
		}
	}
	return all, nil
}

// Stamp tells whether the list has changed since it was read.
func Stamp(stateDir string) durable.Stamp {
	return durable.StampOf(os.Lstat(filepath.Join(stateDir, folder)))
}
