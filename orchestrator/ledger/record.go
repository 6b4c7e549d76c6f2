package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/state"
)

// mostForged limits how many forged records are remembered.
const mostForged = 256

// digestOf returns a digest of everything in a record, times included.
func digestOf(d inbox.Delivery) string {
	data, err := json.Marshal(d)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Records saves the outbox record of an entry's verdict, before the outbox has it.
func (b *Book) Records(d inbox.Delivery) error {
	return b.change(func(k *book) {
		k.Proven = slices.Clone(k.Proven)
		for i := range k.Proven {
			if p := &k.Proven[i]; p.Delivery == d.DeliveryID {
				p.ID, p.Record = d.ID, digestOf(d)
			}
		}
	})
}

// Forges saves which records are forged.
func (b *Book) Forges(all []inbox.Delivery) error {
	if len(all) == 0 {
		return nil
	}
	return b.change(func(k *book) {
		k.Forged = slices.Clone(k.Forged)
		for _, d := range all {
			if digest := digestOf(d); !slices.Contains(k.Forged, digest) {
				k.Forged = append(k.Forged, digest)
			}
		}
		k.Forged = k.Forged[max(0, len(k.Forged)-mostForged):]
	})
}

// Differs reports whether an outbox record belongs to a proven entry but is not the record of
// its verdict: it has another time, iteration or reply, or is a second one.
func (b *Book) Differs(d inbox.Delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book.differs(d)
}

func (k *book) differs(d inbox.Delivery) bool {
	named := false
	for _, p := range k.Proven {
		if p.Delivery == d.DeliveryID {
			return p.Record != "" && p.Record != digestOf(d)
		}
		named = named || p.ID != "" && p.ID == d.ID
	}
	return named
}

// doubts reports whether an outbox record should be that of a verdict and is not. Records
// from before verdicts were kept, by their own time, are not doubted, unless fresh says that
// the prompt is new.
func (k *book) doubts(d inbox.Delivery, fresh bool) bool {
	switch {
	case slices.Contains(k.Forged, digestOf(d)), k.differs(d):
		return true
	case !k.Until, slices.ContainsFunc(k.Proven, func(p Proven) bool { return p.Delivery == d.DeliveryID }):
		return false
	}
	return fresh || !k.Since.IsZero() && d.AcknowledgedAt.After(k.Since)
}

// Unproven reports whether an outbox record belongs to an entry that has to pass something,
// and is not the record of its passing: the agent may have written it. key is the agent's,
// "" if it is not known. fresh says that the entry was queued for the first time since the
// until: was declared.
func Unproven(stateDir, key, path string, d inbox.Delivery, fresh bool) (bool, error) {
	demand, err := DemandOf(stateDir, path, d.ID)
	if err != nil || Lacks(demand, d) {
		return err == nil, err
	}
	var k book
	if key != "" {
		if err := state.Load(bookPath(stateDir, key), &k); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	if demand != nil && demand.Nothing {
		k.Until = false
	}
	return k.doubts(d, fresh), nil
}

// trim drops the oldest proven entries if there are too many, and adjusts Since.
func (k *book) trim() {
	if over := len(k.Proven) - mostProven; over > 0 {
		k.Proven = k.Proven[over:]
		if first := k.Proven[0].At; first.After(k.Since) {
			k.Since = first
		}
	}
}

// begins records that Proven is complete from now on.
func (k *book) begins(until bool, now time.Time) {
	if until && (!k.Until || k.Since.IsZero()) {
		k.Since = now
	}
	k.Until = until
}
