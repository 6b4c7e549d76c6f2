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

// ErrMovedAway means that a damaged record of an entry that is set aside was moved away.
var ErrMovedAway = errors.New("a damaged record of what is set aside was moved")

func asideFolder(stateDir, key string) string {
	return filepath.Join(stateDir, asidesName, filepath.Base(key))
}

// KeepAside durably records an entry that is set aside.
func KeepAside(stateDir, key string, a Aside) error {
	if !inbox.IsDelivery(a.Flight.DeliveryID) {
		return fmt.Errorf("cannot record what is set aside: %q is not a delivery id", a.Flight.DeliveryID)
	}
	if err := state.Save(filepath.Join(asideFolder(stateDir, key), a.Flight.DeliveryID+".json"), a); err != nil {
		return fmt.Errorf("cannot record what is set aside: %w", err)
	}
	return nil
}

// NoAsides reports whether no agent has an entry that is set aside.
func NoAsides(stateDir string) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, asidesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot read what is set aside: %w", err)
	}
	return len(entries) == 0, nil
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
// those that can be read. A damaged record is moved away, with an error that matches
// ErrMovedAway if all others were read; its entry is then one that this fleet did not set aside.
func Asides(stateDir, key string) (all []Aside, err error) {
	entries, err := os.ReadDir(asideFolder(stateDir, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what is set aside: %w", err)
	}
	var errs, damaged []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !inbox.IsDelivery(id) {
			continue
		}
		var a Aside
		path := filepath.Join(asideFolder(stateDir, key), e.Name())
		switch err := state.Load(path, &a); {
		case errors.Is(err, fs.ErrNotExist): // the entry has just ended
		case state.IsUnusable(err):
			damaged = append(damaged, fmt.Errorf("%w to %q: %w", ErrMovedAway, path+".damaged", err))
			errs = append(errs, os.Rename(path, path+".damaged"))
		case err != nil:
			errs = append(errs, err)
		case a.Flight.DeliveryID == id && a.Flight.Aside != nil:
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(x, y Aside) int { return x.Flight.Aside.Since.Compare(y.Flight.Aside.Since) })
	if err := errors.Join(errs...); err != nil {
		return all, err
	}
	return all, errors.Join(damaged...)
}
