package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/hook/durable"
)

// Limits of the outbox.
const (
	// MaxReply is how many bytes of an agent's last message are kept.
	MaxReply = 64 << 10
	// MaxOutbox is the size at which outbox.jsonl becomes outbox.1.jsonl; the
	// previous outbox.1.jsonl is deleted.
	MaxOutbox = 64 << 20
)

const (
	olderOutbox = "outbox.1.jsonl"
	// recordMax bounds a record that is read: JSON makes a reply of control
	// characters six times as long.
	recordMax = 2 << 20
)

func newDelivery(f *flight, a Acknowledgement) *Delivery {
	d := &Delivery{
		DeliveryID: f.DeliveryID, EntryID: f.EntryID, ID: f.ID, Source: f.Source,
		Session: a.Session, Attempt: f.Attempt, DeliveredAt: f.DeliveredAt, AcknowledgedAt: a.Now.UTC(),
		Abandoned: a.Abandoned,
	}
	if a.Now.IsZero() {
		d.AcknowledgedAt = time.Now().UTC()
	}
	d.Reply, d.ReplyCut = cutText(strings.ToValidUTF8(a.Reply, "\uFFFD"), MaxReply)
	return d
}

// cutText shortens s to at most limit bytes on a rune boundary.
func cutText(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}

// delivered reports whether the last outbox record is of this delivery, because an
// acknowledgement was interrupted after writing it.
func (q *Queue) delivered(delivery string) (bool, error) {
	for _, name := range []string{outboxFile, olderOutbox} {
		line, err := q.home.LastLine(name, recordMax)
		if errors.Is(err, durable.ErrNotRegular) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if line != nil {
			var d struct {
				DeliveryID string `json:"delivery_id"`
			}
			return json.Unmarshal(line, &d) == nil && d.DeliveryID == delivery, nil
		}
		if info, err := q.home.Stat(name); err == nil && info.Size() > 0 {
			return false, nil // it ends with a torn record
		}
	}
	return false, nil
}

// lastDone returns the entry id of the line that was acknowledged last, or "".
func (q *Queue) lastDone() (string, error) {
	line, err := q.home.LastLine(outboxFile, recordMax)
	if errors.Is(err, durable.ErrNotRegular) || err == nil && line == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var d Delivery
	if json.Unmarshal(line, &d) != nil {
		return "", nil // a torn record
	}
	return d.EntryID, nil
}

// LastReply returns the reply in the last outbox record, or "". It needs no lock.
func (q *Queue) LastReply() (string, error) {
	line, err := q.home.LastLine(outboxFile, recordMax)
	if err != nil || line == nil {
		return "", err
	}
	var d Delivery
	if json.Unmarshal(line, &d) != nil {
		return "", nil // a torn record
	}
	return d.Reply, nil
}

// record appends a record to the outbox, durably.
func (h *Held) record(d *Delivery) error {
	line, err := encodeJSON(d)
	if err != nil {
		return err
	}
	if info, err := h.home.Stat(outboxFile); err == nil && info.Size() >= MaxOutbox {
		if err := h.home.Rename(outboxFile, olderOutbox); err != nil {
			return err
		}
	}
	return h.extend(h.home, outboxFile, line)
}

// Deliveries returns the outbox records, oldest first, each delivery once. It skips
// torn records. It needs no lock.
func (q *Queue) Deliveries() iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		var seen recent
		for _, name := range []string{olderOutbox, outboxFile} {
			if _, more := q.deliveriesIn(name, 0, &seen, yield); !more {
				return
			}
		}
	}
}

// FindDelivery returns the record of the entry with an envelope id, the last one if
// there are several. It returns ErrNotFound when the entry is not acknowledged (or
// its record was rotated away).
func (q *Queue) FindDelivery(id string) (*Delivery, error) {
	var last *Delivery
	for d, err := range q.Deliveries() {
		if err != nil {
			return nil, err
		}
		if d.ID == id {
			last = &d
		}
	}
	if last == nil {
		return nil, ErrNotFound
	}
	return last, nil
}

// followEvery is how often Follow checks the outbox.
const followEvery = 50 * time.Millisecond

// Follow returns the outbox records, first the existing ones (oldest first) and
// then new ones, until ctx ends or the loop is left. It needs no lock.
func (q *Queue) Follow(ctx context.Context) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		q.Within(ctx)
		var seen recent
		if _, more := q.deliveriesIn(olderOutbox, 0, &seen, yield); !more {
			return
		}
		var at int64
		var was fs.FileInfo
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			now, err := q.home.Stat(outboxFile)
			if err == nil && was != nil && !os.SameFile(was, now) {
				// The outbox was rotated: the last records are in the older file.
				if _, more := q.deliveriesIn(olderOutbox, at, &seen, yield); !more {
					return
				}
				at = 0
			}
			more := true
			if err == nil && now.Size() != at {
				at, more = q.deliveriesIn(outboxFile, at, &seen, yield)
			}
			if err == nil {
				was = now
			}
			if !more {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// AwaitDelivery waits until the entry with an envelope id is acknowledged. When ctx
// ends first, it returns ctx's cause.
func (q *Queue) AwaitDelivery(ctx context.Context, id string) (*Delivery, error) {
	for d, err := range q.Follow(ctx) {
		if err != nil {
			return nil, err
		}
		if d.ID == id {
			return &d, nil
		}
	}
	return nil, context.Cause(ctx)
}

// deliveriesIn yields the whole records of one file from an offset on, and returns
// the offset after them.
func (q *Queue) deliveriesIn(name string, from int64, seen *recent, yield func(Delivery, error) bool) (at int64, more bool) {
	file, err := q.home.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, true
	}
	if err != nil {
		return from, yield(Delivery{}, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return from, yield(Delivery{}, err)
	}
	if info.Size() < from {
		from = 0
	}
	l := q.lines(file, from, info.Size(), recordMax, mostRecords)
	l.bare = true
	for {
		got, err := l.read()
		if errors.Is(err, io.EOF) || err == nil && !got.complete {
			return from, true
		}
		if err != nil {
			return from, yield(Delivery{}, fmt.Errorf("cannot read %s: %w", name, err))
		}
		from = got.end
		var d Delivery
		if got.tooLarge || json.Unmarshal(got.raw, &d) != nil || d.DeliveryID == "" || seen.before(d.DeliveryID) {
			continue
		}
		if !yield(d, nil) {
			return from, false
		}
	}
}

// recent remembers the last delivery ids: an interrupted acknowledgement is
// repeated soon or not at all.
type recent struct {
	ids [64]string
	at  int
}

func (r *recent) before(id string) bool {
	for _, known := range r.ids {
		if known == id {
			return true
		}
	}
	r.ids[r.at%len(r.ids)] = id
	r.at++
	return false
}
