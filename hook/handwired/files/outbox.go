package files

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/queue"
)

// Limits of the outbox, in bytes.
const (
	maxOutbox = 64 << 20 // then outbox.jsonl becomes outbox.1.jsonl
	// recordMax bounds a record that is read: JSON makes a reply of control characters six times
	// as long.
	recordMax = 2 << 20
)

// Acknowledgement describes an entry that is done. It becomes the entry's record in the outbox.
type Acknowledgement struct {
	Session   string
	Reply     string   // the agent's last message; cut at queue.MaxReply on a rune boundary
	Abandoned []string // background tasks that were still running, as "kind: description"
	Now       time.Time
}

// Delivery is one record of outbox.jsonl.
type Delivery struct {
	DeliveryID     string    `json:"delivery_id"`
	EntryID        string    `json:"entry_id"`
	ID             string    `json:"id,omitempty"`
	Source         string    `json:"source,omitempty"`
	Session        string    `json:"session,omitempty"`
	Attempt        int       `json:"attempt"`
	DeliveredAt    time.Time `json:"delivered_at"`
	AcknowledgedAt time.Time `json:"acknowledged_at"`
	Reply          string    `json:"reply"`
	ReplyCut       bool      `json:"reply_cut,omitempty"`
	Abandoned      []string  `json:"abandoned,omitempty"`
	// Of heartbeat's earlier design: what has proved that the work is done; the urgent lane.
	Verdict json.RawMessage `json:"verdict,omitempty"`
	Urgent  bool            `json:"urgent,omitempty"`
}

func newDelivery(f *flight, a Acknowledgement) *Delivery {
	if a.Now.IsZero() {
		a.Now = time.Now()
	}
	d := &Delivery{
		DeliveryID: f.DeliveryID, EntryID: f.EntryID, ID: f.ID, Source: f.Source, Session: a.Session, Attempt: f.Attempt,
		DeliveredAt: f.DeliveredAt, AcknowledgedAt: a.Now.UTC(), Abandoned: a.Abandoned,
	}
	d.Reply, d.ReplyCut = queue.Cut(strings.ToValidUTF8(a.Reply, "\uFFFD"), queue.MaxReply)
	return d
}

// LastDelivery is the last record of the outbox; nil if there is none, or a torn one.
func (r *Reader) LastDelivery() (*Delivery, error) {
	for _, name := range []string{OutboxFile, OlderOutbox} {
		line, err := r.home.LastLine(name, recordMax)
		if errors.Is(err, durable.ErrNotRegular) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if info, err := r.home.Stat(name); line == nil && (err != nil || info.Size() == 0) {
			continue
		}
		var d Delivery
		if json.Unmarshal(line, &d) != nil {
			return nil, nil
		}
		return &d, nil
	}
	return nil, nil
}

// isDelivered reports whether the last outbox record is of this delivery.
func (r *Reader) isDelivered(delivery string) (bool, error) {
	last, err := r.LastDelivery()
	return last != nil && last.DeliveryID == delivery, err
}

// lastDone returns the entry id of the line of this lane that was acknowledged last, as far as
// the end of the outbox tells, or "".
func (r *Reader) lastDone() (last string, err error) {
	info, err := r.home.Stat(OutboxFile)
	if err != nil || !info.Mode().IsRegular() {
		return "", nil
	}
	_, err = r.deliveriesIn(OutboxFile, max(0, info.Size()-2*recordMax), func(d Delivery) bool { // one that is cut is none
		if d.Urgent == r.lane.Urgent {
			last = d.EntryID
		}
		return true
	})
	return last, err
}

// Deliveries calls do for the outbox's records, oldest first, until do returns false. It skips
// torn ones. After an interruption one may stand there twice.
func (r *Reader) Deliveries(do func(Delivery) bool) error {
	for _, name := range []string{OlderOutbox, OutboxFile} {
		if more, err := r.deliveriesIn(name, 0, do); !more || err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) deliveriesIn(name string, from int64, do func(Delivery) bool) (more bool, err error) {
	file, err := r.home.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	more = true
	err = eachRecord(file, from, recordMax, func(l line) bool {
		var d Delivery
		more = !l.complete || json.Unmarshal(l.raw, &d) != nil || d.DeliveryID == "" || do(d)
		return more
	})
	return more, err
}
