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

// Demand is what one entry has to pass instead of its agent's own until:.
type Demand struct {
	// ID is the entry's id, Inbox the file that it was queued in.
	ID    string `json:"id"`
	Inbox string `json:"inbox"`
	// Text is the prompt. It identifies the entry if the agent writes another id into its
	// inbox.
	Text string `json:"text,omitempty"`
	// Trigger is the trigger that queued the entry, or "". The check uses that trigger's
	// until: as declared at the time of the check. Until is the one at the time of
	// queueing.
	Trigger string        `json:"trigger,omitempty"`
	Until   *config.Until `json:"until"`
	// Nothing is true if the entry has nothing to pass, whatever its agent's until: says.
	// Until is nil then.
	Nothing bool `json:"nothing,omitempty"`
	// Queued is true once the entry is known to be in its inbox. A sender that is killed
	// before leaves a demand without an entry.
	Queued bool `json:"queued,omitempty"`
	// Passed is the delivery id that has passed, or "". It is recorded before the queue
	// learns that.
	Passed string `json:"passed,omitempty"`
	// GivenUp is true while the entry is a dead letter, which a person may queue again.
	GivenUp bool      `json:"given_up,omitempty"`
	At      time.Time `json:"at"`
	// Due is when the entry is to be queued, if that is later than At.
	Due time.Time `json:"due,omitzero"`
}

func (d Demand) says() bool { return (d.Until != nil) != d.Nothing }

// demandFolder returns the folder with the demands of one inbox. It is named for the inbox,
// not the agent, because an agent may be renamed.
func demandFolder(stateDir, inbox string) string {
	return filepath.Join(stateDir, "demands", hashOf(inbox, 8))
}

func demandPath(stateDir, inbox, id string) string {
	return filepath.Join(demandFolder(stateDir, inbox), hashOf(id, 16)+".json")
}

// KeepDemand durably records what an entry has to pass, before it is queued.
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

// Asks is KeepDemand for an entry that may have been queued before. Call end with whether it
// is queued now; if not, the demand that was recorded before stays.
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

// Passes records that a delivery of an entry has passed, before the queue learns that.
func Passes(stateDir, inbox, id, delivery string) error {
	return change(stateDir, inbox, id, func(d *Demand) { d.Passed = delivery })
}

// Stands records that an entry was seen in its queue.
func Stands(stateDir, inbox, id string) error {
	return change(stateDir, inbox, id, func(d *Demand) { d.GivenUp, d.Queued = false, true })
}

// Lacks reports whether an outbox record belongs to an entry with a demand, but not to the
// delivery that has passed. A nil demand lacks nothing.
func Lacks(d *Demand, of inbox.Delivery) bool {
	return d != nil && !d.Nothing && (d.Passed == "" || d.Passed != of.DeliveryID)
}

// change changes the demand of an entry, if there is one.
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

// GiveUp records that an entry became a dead letter. Its demand is kept, because a person may
// queue it again.
func GiveUp(stateDir, inbox, id string) error {
	return change(stateDir, inbox, id, func(d *Demand) { d.GivenUp = true })
}

// Demands returns the demands of an inbox's entries that are not done. With an error it
// returns those that can be read.
func Demands(stateDir, inbox string) ([]Demand, error) {
	dir := demandFolder(stateDir, inbox)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what entries have to pass: %w", err)
	}
	var errs []error
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

// Definition returns a hash of what has to be passed.
func Definition(u *config.Until) string {
	passed := *u
	passed.Aside = false // which says only where the entry waits
	data, err := json.Marshal(passed)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
