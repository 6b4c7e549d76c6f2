package inbox

import (
	"bytes"
	"cmp"
	"io"
	"iter"
	"os"
	"slices"
	"syscall"
	"time"

	form "heartbeat/queue/line"
)

// OutboxMark says how far an outbox was read, and which entries were not done then. The zero
// value is the beginning of the outbox. A caller that keeps it where no agent can write can tell
// later what has become of the queue.
type OutboxMark struct {
	Ino uint64 `json:"ino"` // of the file
	At  int64  `json:"at"`  // bytes
	// Before is the end of the data before At. Another file with the same data there is a
	// copy.
	Before []byte `json:"before,omitempty"`
	// Since is when EndOfDeliveries made the mark, Open what was not done then in each lane.
	Since time.Time `json:"since,omitzero"`
	Open  []Front   `json:"open,omitempty"`
	// seen are records that were returned since: older records may come back, too.
	seen recent
}

// Front is the place in a lane behind its done lines.
type Front struct {
	Urgent     bool   `json:"urgent,omitempty"`
	Ino        uint64 `json:"ino"`
	Generation int64  `json:"generation"`
	From       int64  `json:"from"` // -1: not known
}

// beforeMax is how much of the outbox a mark remembers.
const beforeMax = 256

// EndOfDeliveries is the mark after the last whole outbox record. It needs no lock.
func (q *Queue) EndOfDeliveries() (m OutboxMark) {
	m.Since = time.Now()
	m.Open = q.fronts()
	file, size := q.outboxNow(outboxFile, &m.Ino)
	if file == nil {
		return m
	}
	defer file.Close()
	for chunk := int64(4 << 10); m.At == 0 && size > 0; chunk *= 4 {
		n := min(chunk, size, recordMax)
		tail := make([]byte, n)
		if _, err := file.ReadAt(tail, size-n); err != nil {
			break
		}
		if end := bytes.LastIndexByte(tail, '\n'); end >= 0 {
			m.At = size - n + int64(end) + 1
		} else if n == size || n == recordMax {
			break // it holds no record that can be read
		}
	}
	m.Before = endsWith(file, m.At)
	return m
}

// outboxNow opens a file of records and returns its inode and size; nil: it cannot be read.
func (q *Queue) outboxNow(name string, ino *uint64) (file *os.File, size int64) {
	*ino = 0
	file, err := q.home.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, 0
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		*ino = st.Ino
	}
	return file, info.Size()
}

func endsWith(file *os.File, at int64) []byte {
	n := min(at, beforeMax)
	end := make([]byte, n)
	if _, err := file.ReadAt(end, at-n); err != nil && err != io.EOF {
		return nil
	}
	return end
}

// has reports whether a file of records has the same data up to the mark as the marked one: it
// is that file or a copy.
func (q *Queue) has(name string, m *OutboxMark) (same bool, ino uint64) {
	file, size := q.outboxNow(name, &ino)
	if file == nil {
		return false, 0
	}
	defer file.Close()
	return size >= m.At && bytes.Equal(endsWith(file, m.At), m.Before) && (m.At > 0 || m.Ino == ino), ino
}

// DeliveriesFrom returns the outbox records after a mark, rotated ones included, and advances the
// mark. If somebody has removed, cut or replaced the marked file, older records may be in it
// again. Then it returns the records whose time is after the last EndOfDeliveries, the records
// of entries that were not done then, and the records without a delivery id, which heartbeat
// does not write. It needs no lock.
func (q *Queue) DeliveriesFrom(m *OutboxMark) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		read := func(name string, ino uint64, from int64, news func(Delivery) bool) (more bool) {
			m.Ino = ino
			m.At, more = q.recordsIn(name, from, &m.seen, func(d Delivery, err error) bool {
				return err == nil && !news(d) || yield(d, err)
			})
			return more
		}
		all := func(Delivery) bool { return true }
		here, now := q.has(outboxFile, m)
		there, older := q.has(olderOutbox, m)
		switch {
		case there && older == m.Ino:
			if read(olderOutbox, older, m.At, all) && now != 0 {
				read(outboxFile, now, 0, all)
			}
		case now == 0:
			return // nothing to read until there is one again
		case here:
			read(outboxFile, now, m.At, all)
		default:
			read(outboxFile, now, 0, func(d Delivery) bool {
				return d.DeliveryID == "" || d.DeliveredAt.After(m.Since) || q.wasOpen(d, m.Open)
			})
		}
		m.Before = nil
		for _, name := range []string{outboxFile, olderOutbox} {
			file, _ := q.outboxNow(name, &now)
			if file == nil {
				continue
			}
			if now == m.Ino {
				m.Before = endsWith(file, m.At)
			}
			file.Close()
		}
	}
}

// wasOpen reports whether a record belongs to an entry whose line was behind the front of any
// lane. The record is not asked for the lane, because it may be forged.
func (q *Queue) wasOpen(d Delivery, fronts []Front) bool {
	return slices.ContainsFunc(fronts, func(f Front) bool {
		l := q.laneOf(f.Urgent)
		raw := l.lineOf(l.name, func(s *source, got line) bool {
			return s.ino == f.Ino && got.start >= f.From && l.deliveryID(f.Generation, got.start, got.raw) == d.DeliveryID
		})
		return raw != nil
	})
}

// FileForged files an entry that the queue's files call done, although it has no verdict, as a
// dead letter. The dead letter has the entry's line if that can be found, whatever the record
// says, otherwise the sender's prompt if that is known. An entry that is still in the queue is
// not filed. A second call for the same delivery files nothing.
func (h *Held) FileForged(d Delivery, prompt string) (filed bool, err error) {
	if err := h.check(); err != nil {
		return false, err
	}
	raw, urgent := h.forgedLine(d)
	if stands, err := h.stands(d, raw == nil); stands || err != nil {
		return false, err
	}
	dead := DeadEntry{
		EntryID: cmp.Or(d.EntryID, form.Sum(nil)), DeliveryID: d.DeliveryID, ID: d.ID, Source: d.Source, DeliveredAt: d.DeliveredAt,
		Reason: Forged, Attempts: d.Attempt, At: time.Now().UTC(), Urgent: urgent,
	}
	switch {
	case raw != nil:
		got := form.Decode(raw, false)
		dead.EntryID, dead.ID, dead.Source = form.Sum(raw), got.ID, got.Source
		raw, err = withMark(raw)
	case prompt != "":
		raw, err = SentLine(d.ID, prompt)
		dead.EntryID = form.Sum(raw)
	}
	if err != nil {
		return false, err
	}
	dead.setRaw(raw)
	return true, h.file([]DeadEntry{dead})
}

// forgedLine returns the line of a delivery and its lane, found by the delivery id or else by the
// entry id. Another file may have replaced the one that the line was in.
func (q *Queue) forgedLine(d Delivery) (raw []byte, urgent bool) {
	byDelivery := func(l *lane) func(*source, line) bool {
		m, _, err := l.readMeta()
		return func(_ *source, got line) bool {
			return err == nil && m != nil && l.deliveryID(m.Generation, got.start, got.raw) == d.DeliveryID
		}
	}
	byEntry := func(*lane) func(*source, line) bool {
		return func(_ *source, got line) bool { return got.id() == d.EntryID }
	}
	for _, fits := range []func(*lane) func(*source, line) bool{byDelivery, byEntry} {
		for _, l := range q.lanes() {
			for _, name := range []string{l.name, l.kept} {
				if raw := l.lineOf(name, fits(l)); raw != nil {
					return raw, l.urgent
				}
			}
		}
	}
	return nil, d.Urgent
}

// stands reports whether the entry of a record is in flight, queued or set aside. It is found by
// its delivery id or, with named, by the id that the record gives it.
func (q *Queue) stands(d Delivery, named bool) (stands bool, err error) {
	is := func(id, delivery string) {
		stands = stands || delivery == d.DeliveryID && delivery != "" || named && id == d.ID && id != ""
	}
	for _, l := range q.lanes() {
		v, err := l.look()
		if err != nil {
			return false, err
		}
		if v.flight != nil && !v.stale {
			is(v.flight.ID, v.flight.DeliveryID)
		}
		err = l.each(v, func(got line) bool {
			if e := l.entry(got, v.verdict.meta.Generation); e != nil {
				is(e.ID, e.DeliveryID)
			}
			return !stands
		})
		v.close()
		if stands || err != nil {
			return stands, err
		}
	}
	aside, err := q.waiting()
	for _, f := range aside {
		is(f.ID, f.DeliveryID)
	}
	return stands, err
}

// Sent is an entry as it was sent.
type Sent struct{ ID, Prompt string }

// FileGone files entries as dead letters that have left the queue without a verdict, with
// what was sent. Calling it again files them again: the caller knows what it has filed.
func (h *Held) FileGone(why Reason, all ...Sent) error {
	if err := h.check(); err != nil {
		return err
	}
	now, size := time.Now().UTC(), 0
	var batch []DeadEntry
	for i, s := range all {
		raw, err := SentLine(s.ID, s.Prompt)
		if err != nil {
			return err
		}
		d := DeadEntry{
			EntryID: form.Sum(raw), DeliveryID: deliveryID(false, now.UnixNano(), int64(i), raw), ID: s.ID,
			Reason: why, Cause: "it has left the queue without a verdict", At: now,
		}
		if s.Prompt != "" {
			d.setRaw(raw)
		}
		batch, size = append(batch, d), size+len(raw)
		if size < lossBytes {
			continue
		}
		if err := h.file(batch); err != nil {
			return err
		}
		batch, size = batch[:0], 0
	}
	return h.file(batch)
}

// SentLine is the line of an entry that is known by its id, or "", and by its prompt.
func SentLine(id, prompt string) ([]byte, error) {
	if id == "" {
		line, err := encodeJSON(prompt)
		return bytes.TrimSuffix(line, []byte{'\n'}), err
	}
	line, err := form.Encode(form.Envelope{ID: id, Checked: true, Prompt: prompt})
	return bytes.TrimSuffix(line, []byte{'\n'}), err
}

// withMark returns a line with the mark of an entry that has to be proven, because the agent may
// have removed it. Only lines of send and of triggers have this mark.
func withMark(raw []byte) ([]byte, error) {
	got := form.Decode(raw, false)
	if got.Checked || got.Kind != form.Text || got.ID == "" {
		return raw, nil
	}
	line, err := form.Encode(form.Envelope{ID: got.ID, Source: got.Source, Checked: true, Prompt: got.Prompt})
	return bytes.TrimSuffix(line, []byte{'\n'}), err
}

// lineOf returns the last line of a file of the lane that fits; nil: there is none.
func (q *lane) lineOf(name string, fits func(*source, line) bool) (raw []byte) {
	s, err := q.openNamed(name, os.O_RDONLY)
	if err != nil || s.file == nil {
		return nil
	}
	defer s.close()
	for l := q.stored(s); ; {
		got, err := l.read()
		if err != nil {
			return raw
		}
		if !got.tooLarge && got.complete && fits(s, got) {
			raw = bytes.Clone(got.raw)
		}
	}
}
