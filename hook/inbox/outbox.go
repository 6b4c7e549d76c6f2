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
		Abandoned: a.Abandoned, Urgent: f.Urgent,
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

// Delivered reports whether an entry was the last one that was acknowledged. It needs
// no lock.
func (q *Queue) Delivered(delivery string) (bool, error) { return q.delivered(delivery) }

// delivered reports whether the last outbox record is of this delivery. Whoever can
// write the outbox can say so.
func (q *Queue) delivered(delivery string) (bool, error) {
	last, err := q.lastRecord()
	return last != nil && last.DeliveryID == delivery, err
}

// lastRecord is the last record of the outbox; nil if there is none, or a torn one.
func (q *Queue) lastRecord() (*Delivery, error) {
	for _, name := range []string{outboxFile, olderOutbox} {
		line, err := q.home.LastLine(name, recordMax)
		if errors.Is(err, durable.ErrNotRegular) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if line != nil {
			var d Delivery
			if json.Unmarshal(line, &d) != nil {
				return nil, nil
			}
			return &d, nil
		}
		if info, err := q.home.Stat(name); err == nil && info.Size() > 0 {
			return nil, nil // it ends with a torn record
		}
	}
	return nil, nil
}

// recorded reports whether the last outbox record is this one, because whoever finished
// the entry was interrupted after writing it. Somebody else's record of the same
// delivery is not.
func (q *Queue) recorded(d *Delivery) (bool, error) {
	last, err := q.lastRecord()
	return last != nil && last.says() == d.says(), err
}

// says is what a record says of which entry, apart from times. What nobody had to prove
// may be acknowledged again with another reply.
func (d *Delivery) says() string {
	is := d.DeliveryID + "\n" + d.EntryID + "\n" + d.ID
	if d.Verdict == nil {
		return is
	}
	return fmt.Sprintf("%s\n%d %s\n%s", is, d.Verdict.Iteration, d.Verdict.By, sumOf([]byte(d.Reply)))
}

// lastDone returns the entry id of the line of this lane that was acknowledged last, or
// "".
func (q *lane) lastDone() (string, error) {
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
	if d.Urgent == q.urgent {
		return d.EntryID, nil
	}
	return q.lastOfLane()
}

// laneTail is how much of the outbox's end is searched for the last record of a lane:
// readers look again and again. What is older counts as unknown.
const laneTail = 2 * recordMax

func (q *lane) lastOfLane() (last string, err error) {
	var ino uint64
	file, size := q.outboxNow(outboxFile, &ino)
	if file == nil {
		return "", nil
	}
	defer file.Close()
	l := q.lines(file, max(0, size-laneTail), size, recordMax, laneTail)
	for l.bare = true; ; {
		got, err := l.read()
		if err != nil {
			return last, ignoreEOF(err)
		}
		var d Delivery // a record that is cut is none
		if !got.tooLarge && json.Unmarshal(got.raw, &d) == nil && d.DeliveryID != "" && d.Urgent == q.urgent {
			last = d.EntryID
		}
	}
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

// Deliveries returns the outbox records, oldest first, each once. It skips torn records.
// Two that differ may be of one delivery: one of them is not ours. It needs no lock.
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
// there are several, among those that counts, if it is not nil, lets count. It returns
// ErrNotFound when the entry is not acknowledged (or its record was rotated away).
func (q *Queue) FindDelivery(id string, counts func(Delivery) bool) (*Delivery, error) {
	var last *Delivery
	for d, err := range q.Deliveries() {
		if err != nil {
			return nil, err
		}
		if d.ID == id && (counts == nil || counts(d)) {
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
// then new ones, until ctx ends or the loop is left. As long as something
// else stands in the outbox's place, each look yields an error. It needs no lock.
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
			if err == nil && (now.Size() != at || !now.Mode().IsRegular()) {
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

// AwaitDelivery waits until there is what FindDelivery finds. When ctx ends first, it
// returns ctx's cause.
func (q *Queue) AwaitDelivery(ctx context.Context, id string, counts func(Delivery) bool) (*Delivery, error) {
	for d, err := range q.Follow(ctx) {
		if err != nil {
			return nil, err
		}
		if d.ID == id && (counts == nil || counts(d)) {
			return q.FindDelivery(id, counts)
		}
	}
	return nil, context.Cause(ctx)
}

// deliveriesIn is recordsIn for those that name a delivery.
func (q *Queue) deliveriesIn(name string, from int64, seen *recent, yield func(Delivery, error) bool) (at int64, more bool) {
	return q.recordsIn(name, from, seen, func(d Delivery, err error) bool {
		return err == nil && d.DeliveryID == "" || yield(d, err)
	})
}

// recordsIn yields the whole records of one file from an offset on, and returns the
// offset after them.
func (q *Queue) recordsIn(name string, from int64, seen *recent, yield func(Delivery, error) bool) (at int64, more bool) {
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
		if got.tooLarge || json.Unmarshal(got.raw, &d) != nil || d.DeliveryID == "" && d.ID == "" || seen.before(d.says()) {
			continue
		}
		if !yield(d, nil) {
			return from, false
		}
	}
}

// recent remembers the last records: an interrupted acknowledgement is repeated soon or
// not at all.
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
