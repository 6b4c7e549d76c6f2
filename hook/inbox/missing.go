package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
)

// present is what the inbox holds behind the cursor.
type present struct {
	counts   map[[8]byte]int // how often each line occurs, by keyOf
	ids      []knownID
	reported int
}

func keyOf(id string, raw []byte) (k [8]byte) {
	sum := sha256.Sum256(raw)
	if id != "" {
		sum = sha256.Sum256([]byte("id:" + id))
	}
	copy(k[:], sum[:])
	return k
}

// take counts down, and reports whether it was there.
func (p *present) take(k [8]byte) bool {
	n := p.counts[k]
	if n > 0 {
		p.counts[k]--
	}
	return n > 0
}

func (q *lane) present(v *view) (*present, error) {
	p := &present{counts: map[[8]byte]int{}}
	if v.source.file == nil {
		return p, nil
	}
	l := q.lines(v.source.file, v.verdict.cursor, v.source.now().size, q.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if err != nil {
			return p, ignoreEOF(err)
		}
		if got.tooLarge || !got.complete {
			continue
		}
		d := form.Decode(got.raw, got.start == 0)
		if d.Kind != form.Text {
			continue
		}
		p.counts[keyOf(d.ID, got.raw)]++
		if d.ID != "" && len(p.ids) < idsBatch {
			p.ids = append(p.ids, knownID{ID: d.ID, Ino: v.source.ino, Start: new(got.start)})
		}
	}
}

// missingIn compares with the file that was the inbox before. It returns what stands
// there and has an id.
func (q *lane) missingIn(old *source, v *view, p *present, do func(DeadEntry) error) (there map[[8]byte]bool, err error) {
	there = map[[8]byte]bool{}
	from, certain := doneOf(old, v)
	var generation int64
	if v.before != nil {
		generation = v.before.Generation
	}
	done := map[[8]byte]bool{}
	if !certain {
		if err := q.everDone(done); err != nil {
			return there, err
		}
	}
	l := q.lines(old.file, from, old.size, q.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if err != nil {
			return there, ignoreEOF(err)
		}
		e := q.entry(got, generation)
		if e == nil || !got.complete {
			continue
		}
		if e.ID != "" {
			there[keyOf(e.ID, nil)] = true
		}
		if v.flies(e.ID, e.Raw) {
			continue
		}
		if k := keyOf(e.ID, e.Raw); p.take(k) || done[k] {
			continue
		}
		if err := do(deadQueued(e)); err != nil {
			return there, err
		}
	}
}

// doneOf returns how far the former inbox was done; its beginning if that is not certain.
func doneOf(old *source, v *view) (from int64, certain bool) {
	m := v.before
	switch {
	case m == nil && !v.cursorFile.corrupt && !v.cursorFile.missing && v.cursorFile.value <= old.size && old.startsLine(v.cursorFile.value):
		return v.cursorFile.value, true
	case m != nil && m.Cursor == 0:
		return 0, true
	case m != nil && m.Cursor <= old.size && old.sum(max(0, m.Cursor-window), m.Cursor) == m.Tail:
		return m.Cursor, true
	}
	return 0, false
}

// flies reports whether an entry is the one in flight, whose record has its text.
func (v *view) flies(id string, raw []byte) bool {
	f := v.flight
	return f != nil && !v.stale && (id != "" && f.ID == id || bytes.Equal(f.raw, raw))
}

// everDone finds what was ever done, given up or set aside.
func (q *Queue) everDone(done map[[8]byte]bool) error {
	waiting, err := q.waiting()
	if err != nil {
		return err
	}
	for _, f := range waiting {
		done[keyIn(f.ID, f.EntryID)] = true
	}
	for d, err := range q.Deliveries() {
		if errors.Is(err, durable.ErrNotRegular) {
			continue
		}
		if err != nil {
			return err
		}
		done[keyIn(d.ID, d.EntryID)] = true
	}
	_, err = q.eachDead(&Mark{}, mostRecords, func(_ []byte, d *DeadEntry) bool {
		if d != nil {
			done[keyIn(d.ID, d.EntryID)] = true
		}
		return true
	})
	if errors.Is(err, durable.ErrNotRegular) {
		err = nil // it is set aside when something is filed
	}
	return err
}

// keyIn is keyOf for a record, which has the sha256 of the line.
func keyIn(id, entry string) (k [8]byte) {
	if id != "" {
		return keyOf(id, nil)
	}
	_, _ = hex.Decode(k[:], []byte(entry[:min(2*len(k), len(entry))])) // an invalid one matches nothing
	return k
}

// missingByID compares with the memory of ids, in which the texts are not known. Of lines that
// others wrote only the size is known: all of them become one dead letter.
func (q *lane) missingByID(v *view, known []knownID, p *present, do func(DeadEntry) error) error {
	var generation, size int64
	if m := v.before; m != nil {
		generation, size = m.Generation, m.Size
	}
	if len(known) == 0 && size == 0 && (v.flight == nil || v.flight.InboxSize == 0) {
		return nil
	}
	filed := map[[8]byte]bool{}
	if err := q.everDone(filed); err != nil {
		return err
	}
	for _, k := range known {
		key := keyOf(k.ID, nil)
		if p.take(key) || v.flies(k.ID, nil) || filed[key] {
			continue
		}
		filed[key] = true // a memory that was rebuilt may hold it twice
		d := DeadEntry{
			EntryID: form.Sum([]byte(k.ID)), StartOffset: *k.Start, EndOffset: *k.Start, ID: k.ID,
			DeliveryID: q.deliveryID(generation, *k.Start, []byte(k.ID)),
		}
		if e := q.leftOut(v, k, generation); e != nil {
			d = deadQueued(e)
		}
		if err := do(d); err != nil {
			return err
		}
	}
	if p.reported > 0 {
		return nil
	}
	return q.missingBytes(v, generation, size, len(known), do)
}

// leftOut is an entry of the memory of ids that stands before the cursor, where it was
// written: an answer passed it.
func (q *lane) leftOut(v *view, k knownID, generation int64) *Entry {
	if v.source.file == nil || *k.Start >= v.verdict.cursor {
		return nil
	}
	e, err := q.firstEntry(v.source, *k.Start, generation)
	if err != nil || e == nil || e.Start != *k.Start || e.ID != k.ID {
		return nil
	}
	return e
}

// missingBytes reports lines of others of which only the size is known.
func (q *lane) missingBytes(v *view, generation, size int64, known int, do func(DeadEntry) error) error {
	from := v.passed()
	if f := v.flight; f != nil && f.Generation == generation {
		size = max(size, f.InboxSize)
		if !v.stale {
			from = max(from, f.EndOffset)
		}
	}
	left := int64(0)
	if v.source.file != nil && !v.verdict.fresh {
		left = v.source.size - v.behind()
	}
	lost := size - from - left
	if lost <= 0 || known > 0 {
		return nil
	}
	return do(DeadEntry{
		EntryID: form.Sum(nil), StartOffset: from, EndOffset: size, Length: lost, DeliveryID: q.deliveryID(generation, from, []byte(strconv.FormatInt(size, 10))),
	})
}
