package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/state"
)

// Demand is what one entry has to pass, other than its agent's own until: it says.
type Demand struct {
	// ID is the entry's, Inbox the file that it was queued in.
	ID    string `json:"id"`
	Inbox string `json:"inbox"`
	// Text is the prompt: the agent can write another id into its inbox, and take the
	// entry out of it.
	Text string `json:"text,omitempty"`
	// Trigger is the one that has queued it, or "": its until: is the one that is in
	// force when it is checked. Until is what it was when the entry was queued.
	Trigger string        `json:"trigger,omitempty"`
	Until   *config.Until `json:"until"`
	// Nothing is true if it has nothing to pass, whatever its agent's until: says, and
	// then Until is nil.
	Nothing bool `json:"nothing,omitempty"`
	// Queued is true once its sender knows, or somebody has seen, that it is in its inbox:
	// a sender that was killed before has queued nothing.
	Queued bool `json:"queued,omitempty"`
	// Passed is the delivery of it that has passed, from before its queue learns that; or "".
	Passed string `json:"passed,omitempty"`
	// GivenUp is true while it is a dead letter, which a person may queue again.
	GivenUp bool      `json:"given_up,omitempty"`
	At      time.Time `json:"at"`
	// Due is when it is queued, if that is later than At.
	Due time.Time `json:"due,omitzero"`
}

func (d Demand) says() bool { return (d.Until != nil) != d.Nothing }

// demandFolder is where the demands of one inbox are: entries stay in their
// directory, whatever their agent is called.
func demandFolder(stateDir, inbox string) string {
	sum := sha256.Sum256([]byte(inbox))
	return filepath.Join(stateDir, "demands", hex.EncodeToString(sum[:8]))
}

func demandPath(stateDir, inbox, id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(demandFolder(stateDir, inbox), hex.EncodeToString(sum[:16])+".json")
}

// KeepDemand records what an entry has to pass, durably, before it is queued.
func KeepDemand(stateDir string, d Demand) error {
	if d.ID == "" || !d.says() {
		return errors.New("cannot record what an entry has to pass: it has no id, or nothing to pass")
	}
	if err := state.Save(demandPath(stateDir, d.Inbox, d.ID), d); err != nil {
		return fmt.Errorf("cannot record what an entry has to pass: %w", err)
	}
	return nil
}

// DemandOf returns what the entry with an id has to pass; nil: nothing is recorded.
func DemandOf(stateDir, inbox, id string) (*Demand, error) {
	if id == "" {
		return nil, nil
	}
	var d Demand
	err := state.Load(demandPath(stateDir, inbox, id), &d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot tell what an entry has to pass: %w", err)
	case d.ID != id || !d.says():
		return nil, fmt.Errorf("cannot tell what entry %q has to pass: its record is that of another one", id)
	}
	return &d, nil
}

// DropDemand forgets what an entry has to pass.
func DropDemand(stateDir, inbox, id string) error {
	if id == "" {
		return nil
	}
	if err := os.Remove(demandPath(stateDir, inbox, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget what an entry had to pass: %w", err)
	}
	return nil
}

// Asks is KeepDemand for an entry that may have been queued before. end is called with
// whether it is queued now: if not, one that was recorded before stays.
func Asks(stateDir string, d Demand) (end func(queued bool) error, err error) {
	before, err := DemandOf(stateDir, d.Inbox, d.ID)
	if err != nil {
		return nil, err
	}
	d.Queued = before != nil && before.Queued
	if err := KeepDemand(stateDir, d); err != nil {
		return nil, err
	}
	return func(queued bool) error {
		switch {
		case queued:
			return change(stateDir, d.Inbox, d.ID, func(d *Demand) { d.Queued = true })
		case before != nil:
			return KeepDemand(stateDir, *before)
		}
		return DropDemand(stateDir, d.Inbox, d.ID)
	}, nil
}

// Passes records that a delivery of an entry has passed, before its queue learns that.
func Passes(stateDir, inbox, id, delivery string) error {
	return change(stateDir, inbox, id, func(d *Demand) { d.Passed = delivery })
}

// Stands records that an entry was seen in its queue.
func Stands(stateDir, inbox, id string) error {
	return change(stateDir, inbox, id, func(d *Demand) { d.GivenUp, d.Queued = false, true })
}

// Lacks reports whether an outbox record is of an entry that has to pass something, and is
// not of the delivery that has passed; nil: nothing is recorded.
func Lacks(d *Demand, of inbox.Delivery) bool {
	return d != nil && !d.Nothing && (d.Passed == "" || d.Passed != of.DeliveryID)
}

// change changes what is recorded of an entry, if anything is.
func change(stateDir, inbox, id string, how func(*Demand)) error {
	d, err := DemandOf(stateDir, inbox, id)
	if err != nil || d == nil {
		return err
	}
	before := *d
	if how(d); *d == before {
		return nil
	}
	return KeepDemand(stateDir, *d)
}

// GiveUp records that an entry became a dead letter: what it has to pass is kept for
// the case that a person queues it again.
func GiveUp(stateDir, inbox, id string) error {
	return change(stateDir, inbox, id, func(d *Demand) { d.GivenUp = true })
}

// Demands returns those of the entries of an inbox that are not done. With an error
// they are those that can be read.
func Demands(stateDir, inbox string) ([]Demand, error) {
	dir := demandFolder(stateDir, inbox)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	var all []Demand
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		var d Demand
		if err := state.Load(filepath.Join(dir, e.Name()), &d); err != nil {
			errs = append(errs, err)
		} else if d.ID != "" && d.says() {
			all = append(all, d)
		}
	}
	return all, errors.Join(errs...)
}

// Definition is a hash of what has to be passed; it changes with it.
func Definition(u *config.Until) string {
	passed := *u
	passed.Aside = false // says where it waits
	data, err := json.Marshal(passed)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
