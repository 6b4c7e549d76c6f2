package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/state"
)

// Aside is an entry that was set aside until a person answers, and that has not ended yet.
// It is kept here because the agent can write the file in its own directory.
type Aside struct {
	Flight inbox.InFlight `json:"flight"`
	// Conversation is the client's conversation in which it was worked on, and in which its
	// next iteration continues; "": not known.
	Conversation string `json:"conversation,omitempty"`
}

// asidesName is the folder of the entries that are set aside, of all agents.
const asidesName = "asides"

func asideFolder(stateDir, key string) string {
	return filepath.Join(stateDir, asidesName, filepath.Base(key))
}

// KeepAside durably records an entry that is set aside.
func KeepAside(stateDir, key string, a Aside) error {
	if !inbox.IsDelivery(a.Flight.DeliveryID) {
		return fmt.Errorf("cannot record what is set aside: %q is no delivery id", a.Flight.DeliveryID)
	}
	if err := state.Save(filepath.Join(asideFolder(stateDir, key), a.Flight.DeliveryID+".json"), a); err != nil {
		return fmt.Errorf("cannot record what is set aside: %w", err)
	}
	return nil
}

// NoAsides reports whether no agent has an entry that is set aside.
func NoAsides(stateDir string) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, asidesName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return len(entries) == 0, err
}

// DropAside forgets an entry that has ended.
func DropAside(stateDir, key, delivery string) error {
	if !inbox.IsDelivery(delivery) {
		return nil
	}
	err := os.Remove(filepath.Join(asideFolder(stateDir, key), delivery+".json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget what was set aside: %w", err)
	}
	return nil
}

// Forget removes everything about an agent that is no longer remembered, because another
// agent may get its key. Its entries that are set aside stay in its own directory, and are
// handed over again if that directory is declared again.
func Forget(stateDir, key string) error {
	path, folder := bookPath(stateDir, key), asideFolder(stateDir, key)
	if filepath.Dir(folder) != filepath.Join(stateDir, asidesName) {
		return nil // no key
	}
	errs := []error{os.RemoveAll(folder)}
	for _, p := range []string{path, path + ".damaged"} {
		if err := os.Remove(p); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Asides returns an agent's entries that are set aside, oldest first. With an error it returns
// those that can be read.
func Asides(stateDir, key string) (all []Aside, err error) {
	entries, err := os.ReadDir(asideFolder(stateDir, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !inbox.IsDelivery(id) {
			continue
		}
		var a Aside
		switch err := state.Load(filepath.Join(asideFolder(stateDir, key), e.Name()), &a); {
		case errors.Is(err, fs.ErrNotExist): // the entry has just ended
		case err != nil:
			errs = append(errs, err)
		case a.Flight.DeliveryID == id && a.Flight.Aside != nil:
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(x, y Aside) int { return x.Flight.Aside.Since.Compare(y.Flight.Aside.Since) })
	return all, errors.Join(errs...)
}
