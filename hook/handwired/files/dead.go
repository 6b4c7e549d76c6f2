package files

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"heartbeat/queue"
	form "heartbeat/queue/line"
)

// Dead is one record of .dead-letter.jsonl: heartbeat-rs's five fields, then ours.
type Dead struct {
	EntryID     string    `json:"entry_id"`
	StartOffset int64     `json:"start_offset"`
	EndOffset   int64     `json:"end_offset"`
	RawLine     string    `json:"raw_line"` // "": its text is not kept
	DeliveredAt time.Time `json:"delivered_at"`

	DeliveryID string       `json:"delivery_id,omitempty"`
	RawBase64  string       `json:"raw_b64,omitempty"`
	ID         string       `json:"id,omitempty"`
	Source     string       `json:"source,omitempty"`
	Reason     queue.Reason `json:"reason"`   // "": heartbeat-rs has filed it
	Attempts   int          `json:"attempts"` // all hand-overs
	Counted    int          `json:"counted,omitempty"`
	At         time.Time    `json:"at"`
	Length     int64        `json:"length,omitempty"` // bytes of what is not here whole
	Cause      string       `json:"cause,omitempty"`  // what happened
	// Of heartbeat's earlier design: the beginning of a prompt that was too large; the urgent
	// lane; how often its work was checked, and what the last check said.
	Excerpt    string `json:"excerpt,omitempty"`
	Urgent     bool   `json:"urgent,omitempty"`
	Iterations int    `json:"iterations,omitempty"`
	Output     string `json:"output,omitempty"`
}

// Line returns the line's bytes; nil when they are not kept.
func (d *Dead) Line() []byte {
	if raw := form.FromJSON(d.RawLine, d.RawBase64); len(raw) > 0 {
		return raw
	}
	return nil
}

// deadFlight returns the dead letter for an entry in flight.
func deadFlight(f *flight, why queue.Reason, now time.Time) Dead {
	d := Dead{
		EntryID: f.EntryID, StartOffset: f.StartOffset, EndOffset: f.EndOffset, DeliveredAt: f.DeliveredAt,
		DeliveryID: f.DeliveryID, ID: f.ID, Source: f.Source, Reason: why, Attempts: f.Attempt, Counted: f.Repeats, At: now.UTC(),
	}
	d.RawLine, d.RawBase64 = form.ToJSON(f.raw)
	return d
}

// deadLine returns the dead letter for a line that must become one.
func (r *Reader) deadLine(l line, midline bool, generation int64) (Dead, bool) {
	d := Dead{StartOffset: l.start, EndOffset: l.end, EntryID: l.id(), At: time.Now().UTC()}
	switch {
	case l.tooLarge:
		d.Reason, d.Length = queue.TooLarge, l.length
		d.DeliveryID = r.deliveryID(generation, l.start, []byte(d.EntryID))
	case midline && !l.isBlank(), form.Decode(l.raw, l.start == 0).Kind == form.Fragment:
		d.Reason = queue.Torn
		d.DeliveryID = r.deliveryID(generation, l.start, l.raw)
		d.RawLine, d.RawBase64 = form.ToJSON(l.raw)
	default:
		return Dead{}, false
	}
	return d, true
}

// deadMax bounds a record that is read: JSON makes a line at most six times as long, and its
// bytes are stored beside it.
func (r *Reader) deadMax() int64 { return 8*r.maxEntry + 64<<10 }

// DeadLetters calls do for the dead letters, oldest first, until do returns false. It skips what
// is torn or no record. Those of heartbeat-rs have no delivery id.
func (r *Reader) DeadLetters(do func(Dead) bool) error {
	file, err := r.dir.OpenFile(DeadFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return eachRecord(file, 0, r.deadMax(), func(l line) bool {
		d := parseDead(l.raw) // heartbeat-rs's last one has no newline
		return d == nil || do(*d)
	})
}

// parseDead returns nil for a line that is not a record.
func parseDead(raw []byte) *Dead {
	type fields Dead
	var got struct {
		fields
		DeliveredAt string `json:"delivered_at"`
		At          string `json:"at"`
	}
	if json.Unmarshal(raw, &got) != nil || got.EntryID == "" {
		return nil
	}
	d := Dead(got.fields)
	d.DeliveredAt, _ = time.Parse(time.RFC3339, got.DeliveredAt)
	d.At, _ = time.Parse(time.RFC3339, got.At)
	return &d
}

// filed finds out which of these are dead letters already, as whole records: a power cut may
// leave the beginning of one, with its id and without its end.
func (r *Reader) filed(dead []Dead) (filed map[string]bool, err error) {
	filed = map[string]bool{} // :: delivery id → its record stands there
	err = r.DeadLetters(func(d Dead) bool {
		for i := range dead {
			filed[d.DeliveryID] = filed[d.DeliveryID] || dead[i].DeliveryID == d.DeliveryID
		}
		return true
	})
	return filed, err
}
