package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
)

// deadWindow is how much of the end of the dead letters is searched for records
// that an interrupted attempt left: more than one batch of Next writes.
const deadWindow = 16 << 20

// excerptMax is how much is kept of a prompt that never was in the inbox.
const excerptMax = 4 << 10

// setRaw stores a line, with its bytes in base64 when they are not valid UTF-8.
func (d *DeadEntry) setRaw(raw []byte) {
	d.RawLine, d.RawBase64 = form.ToJSON(raw)
}

// Raw returns the line's bytes; nil when it was filed by reference.
func (d *DeadEntry) Raw() []byte {
	if raw := form.FromJSON(d.RawLine, d.RawBase64); len(raw) > 0 {
		return raw
	}
	return nil
}

// Prompt returns the prompt of its line; "" when it was filed by reference.
func (d *DeadEntry) Prompt() string { return form.Decode(d.Raw(), d.StartOffset == 0).Prompt }

// Letter returns its line as it was sent.
func (d *DeadEntry) Letter() Letter {
	got := form.Decode(d.Raw(), d.StartOffset == 0)
	return Letter{ID: got.ID, Source: got.Source, Prompt: got.Prompt, Checked: got.Checked, Urgent: d.Urgent}
}

// Retryable reports whether it can be queued again: its text is known, whole.
func (d *DeadEntry) Retryable() bool {
	raw := d.Raw()
	return d.Reason != Torn && d.Reason != TooLarge && raw != nil && bytes.IndexByte(raw, '\n') < 0
}

// deadFlight returns the dead letter for an entry in flight.
func deadFlight(f *flight, why Reason, now time.Time) DeadEntry {
	d := DeadEntry{
		EntryID: f.EntryID, StartOffset: f.StartOffset, EndOffset: f.EndOffset, DeliveredAt: f.DeliveredAt,
		DeliveryID: f.DeliveryID, ID: f.ID, Source: f.Source, Reason: why, Attempts: f.Attempt, Counted: f.Repeats, At: now.UTC(), Urgent: f.Urgent,
		Output: f.Output, Iterations: f.Iteration,
	}
	d.setRaw(f.raw)
	return d
}

// deadQueued returns the dead letter for a queued entry, without a reason.
func deadQueued(e *Entry) DeadEntry {
	d := DeadEntry{
		EntryID: form.Sum(e.Raw), StartOffset: e.Start, EndOffset: e.End, DeliveryID: e.DeliveryID, ID: e.ID, Source: e.Source,
	}
	d.setRaw(e.Raw)
	return d
}

// file appends dead letters durably, except those whose record an interrupted
// attempt already left.
func (h *Held) file(dead []DeadEntry) error {
	filed, err := h.filed(dead)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, d := range dead {
		if filed[d.DeliveryID] {
			continue
		}
		line, err := encodeJSON(d)
		if err != nil {
			return err
		}
		b.Write(line)
	}
	if b.Len() == 0 {
		return nil
	}
	return h.extend(h.dir, DeadFile, b.Bytes())
}

// filed finds out which of these are dead letters already.
func (q *Queue) filed(dead []DeadEntry) (map[string]bool, error) {
	const key = `"delivery_id":"`
	filed := make(map[string]bool, len(dead)) // :: delivery id → its record stands there
	for _, d := range dead {
		filed[d.DeliveryID] = false
	}
	missing := len(filed)
	err := q.dir.Tail(DeadFile, deadWindow, len(key)+maxID, func(piece []byte) bool {
		for at := bytes.Index(piece, []byte(key)); at >= 0 && missing > 0; at = bytes.Index(piece, []byte(key)) {
			piece = piece[at+len(key):]
			before, _, ok := bytes.Cut(piece, []byte{'"'})
			if !ok {
				break
			}
			if there, asked := filed[string(before)]; asked && !there {
				filed[string(before)] = true
				missing--
			}
		}
		return missing > 0
	})
	if errors.Is(err, durable.ErrNotRegular) {
		return filed, nil // it is set aside
	}
	if err != nil || missing == len(filed) {
		return filed, err
	}
	return q.wholly(filed)
}

// GivenUp reports whether an entry is a dead letter. It needs no lock.
func (q *Queue) GivenUp(delivery string) (bool, error) {
	filed, err := q.filed([]DeadEntry{{DeliveryID: delivery}})
	return filed[delivery], err
}

// wholly keeps those whose record is whole: a power cut may leave the beginning of
// one, with its id and without its end.
func (q *Queue) wholly(filed map[string]bool) (map[string]bool, error) {
	whole := make(map[string]bool, len(filed))
	_, err := q.eachDead(&Mark{}, mostRecords, func(_ []byte, d *DeadEntry) bool {
		if d != nil && filed[d.DeliveryID] {
			whole[d.DeliveryID] = true
		}
		return true
	})
	if errors.Is(err, ErrTooMuch) {
		err = nil // one that is filed twice is listed twice
	}
	return whole, err
}

// FileTooLarge files a letter that Append refused with ErrTooLarge as a dead
// letter, with the beginning of its prompt. A second call for the same ID soon
// afterwards files nothing.
func (h *Held) FileTooLarge(l Letter) error {
	if err := h.check(); err != nil {
		return err
	}
	excerpt, _ := cutText(strings.ToValidUTF8(l.Prompt, "\uFFFD"), excerptMax)
	return h.file([]DeadEntry{{
		EntryID: form.Sum([]byte(l.Prompt)), DeliveryID: deliveryID(false, 0, 0, []byte(l.ID)), ID: l.ID, Source: l.Source,
		Reason: TooLarge, At: time.Now().UTC(), Length: int64(len(l.Prompt)), Excerpt: excerpt, Urgent: l.Urgent,
	}})
}

// FileTaken files a letter that Append refused with ErrDuplicate as a dead letter, with
// its whole prompt: its id is that of another prompt. A second call for the same letter
// soon afterwards files nothing.
func (h *Held) FileTaken(l Letter) error {
	if err := h.check(); err != nil {
		return err
	}
	raw, err := form.Encode(form.Envelope{ID: l.ID, Source: l.Source, Checked: l.Checked, Prompt: l.Prompt})
	if err != nil {
		return err
	}
	raw = bytes.TrimSuffix(raw, []byte{'\n'})
	d := DeadEntry{
		EntryID: form.Sum(raw), DeliveryID: deliveryID(false, 0, 0, raw), ID: l.ID, Source: l.Source, Reason: IDTaken, At: time.Now().UTC(), Urgent: l.Urgent,
		Cause: "another prompt was accepted with its id before its time came",
	}
	d.setRaw(raw)
	return h.file([]DeadEntry{d})
}

// DeadLetters returns the dead letters, oldest first. It skips torn records;
// heartbeat-rs's records have no reason. It needs no lock. When there are too many
// to read, the last error is ErrTooMuch.
func (q *Queue) DeadLetters() iter.Seq2[DeadEntry, error] { return q.DeadLettersFrom(&Mark{}) }

// Mark is the place where reading of the dead letters stopped; the zero value is
// their beginning.
type Mark struct {
	at   int64
	file fs.FileInfo
}

// DeadLettersFrom returns the dead letters after a mark, and advances the mark.
func (q *Queue) DeadLettersFrom(m *Mark) iter.Seq2[DeadEntry, error] {
	return func(yield func(DeadEntry, error) bool) {
		_, err := q.eachDead(m, mostRecords, func(_ []byte, d *DeadEntry) bool {
			return d == nil || yield(*d, nil)
		})
		if err != nil {
			yield(DeadEntry{}, err)
		}
	}
}

// DeadCount is a running count of the dead letters. While More is true, the count
// is not complete.
type DeadCount struct {
	Entries int
	// Lost are those whose reason is Lost. LastLost is the latest one of them.
	// Textless are those of them whose text is not known.
	Lost     int
	LastLost DeadEntry
	Textless int
	// Oldest is when the first of the others was given up.
	Oldest time.Time
	More   bool
	mark   Mark
}

// countStep is how much of the dead letters one call counts.
const countStep = 16 << 20

// CountDead continues counting dead letters where the last call stopped, for some
// megabytes. It needs no lock.
func (q *Queue) CountDead(c *DeadCount) error {
	var n, lost, textless int
	last := c.LastLost
	var oldest time.Time
	other, err := q.eachDead(&c.mark, countStep, func(_ []byte, d *DeadEntry) bool {
		if d == nil {
			return true
		}
		if n++; d.Reason == Lost {
			lost++
			if d.Raw() == nil {
				textless++
			}
			last = *d
			last.RawLine, last.RawBase64 = "", ""
		} else if oldest.IsZero() || d.At.Before(oldest) {
			oldest = d.At
		}
		return true
	})
	if other {
		c.Entries, c.Lost, c.Textless, c.Oldest = 0, 0, 0, time.Time{}
	}
	if c.Oldest.IsZero() || !oldest.IsZero() && oldest.Before(c.Oldest) {
		c.Oldest = oldest
	}
	c.Entries += n
	c.Lost += lost
	c.Textless += textless
	if c.LastLost = last; c.Lost == 0 {
		c.LastLost = DeadEntry{}
	}
	if c.More = errors.Is(err, ErrTooMuch); c.More {
		err = nil
	}
	return err
}

// deadRecordMax bounds a record that is read: JSON makes a line at most six times
// as long, and its bytes are stored beside it.
func (q *Queue) deadRecordMax() int64 { return 8*q.maxEntry + 64<<10 }

// eachDead calls do for each line of the dead letters after a mark, and advances
// the mark. d is nil for a line that is not a record; raw is nil as well for a line
// too large to hold. other is true when the mark belonged to another file.
func (q *Queue) eachDead(m *Mark, most int64, do func(raw []byte, d *DeadEntry) bool) (other bool, err error) {
	file, err := q.dir.OpenFile(DeadFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		*m = Mark{}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("cannot read the dead letters: %v", err)
	}
	if other = m.file == nil || !os.SameFile(m.file, info) || info.Size() < m.at; other {
		m.at = 0
	}
	m.file = info
	l := q.lines(file, m.at, info.Size(), q.deadRecordMax(), most)
	l.bare = true
	for {
		got, err := l.read()
		if errors.Is(err, io.EOF) {
			return other, nil
		}
		if err != nil {
			return other, fmt.Errorf("cannot read the dead letters: %w", err)
		}
		if got.tooLarge {
			got.raw = nil
		}
		d := parseDead(got.raw)
		if got.complete || d != nil {
			m.at = got.end
		}
		if !got.tooLarge && len(bytes.TrimSpace(got.raw)) == 0 {
			continue
		}
		if !do(got.raw, d) {
			return other, nil
		}
	}
}

// parseDead returns nil for a line that is not a record.
func parseDead(line []byte) *DeadEntry {
	type fields DeadEntry
	var r struct {
		fields
		DeliveredAt string `json:"delivered_at"`
		At          string `json:"at"`
	}
	if line == nil || json.Unmarshal(line, &r) != nil || r.EntryID == "" {
		return nil
	}
	d := DeadEntry(r.fields)
	d.DeliveredAt, _ = time.Parse(time.RFC3339, r.DeliveredAt)
	d.At, _ = time.Parse(time.RFC3339, r.At)
	return &d
}

// Named reports whether id names this letter: its delivery id, its envelope's id,
// or its entry id.
func (d *DeadEntry) Named(id string) bool {
	return id != "" && (id == d.DeliveryID || id == d.ID || id == d.EntryID)
}
