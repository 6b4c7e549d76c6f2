package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// Next returns the first complete line after the cursor, of the urgent lane if there is
// one. It skips blank lines and files torn or oversized ones as dead letters. First it
// checks that the cursor belongs to this inbox (which may have been truncated, rotated,
// replaced or edited). It returns ErrEmpty when there is no entry, and ErrNeedsOperator
// when it cannot continue.
//
// While an entry is in flight, Next searches after that entry and files nothing.
//
// A last line without a newline is not handed over. When its writer has been quiet
// for 5 seconds and no process has the inbox open for writing (Linux only), Next
// adds the newline.
func (h *Held) Next() (*Entry, error) {
	for _, l := range h.lanes() {
		if e, err := l.next(); !errors.Is(err, ErrEmpty) {
			return e, err
		}
	}
	return nil, ErrEmpty
}

func (h *heldLane) next() (*Entry, error) {
	for range 2 { // a completed last line is read in the second round
		v, err := h.settle()
		if err != nil {
			return nil, err
		}
		e, completed, err := h.nextOf(v)
		v.close()
		if err != nil || e != nil {
			return e, err
		}
		if !completed {
			break
		}
	}
	return nil, ErrEmpty
}

// skipLimit is how many bytes of blank lines are skipped before the cursor is moved
// past them.
const skipLimit = 1 << 20

func (h *heldLane) nextOf(v *view) (e *Entry, completed bool, err error) {
	if v.source.file == nil {
		return nil, false, nil
	}
	from := v.behind()
	filing := &filing{held: h, view: v, done: from}
	if v.flight != nil {
		filing.idle = true
	}
	l := h.lines(v.source.file, from, v.source.size, h.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, fmt.Errorf("cannot read %q: %w", h.path, err)
		}
		if err != nil || !got.complete {
			if flushErr := filing.flush(); flushErr != nil {
				return nil, false, flushErr
			}
			return nil, err == nil && h.complete(v.source, got), nil
		}
		midline := v.verdict.midline && got.start == from
		if e := h.entry(got, v.verdict.meta.Generation); e != nil && !midline {
			r := v.verdict.meta.Requeued
			e.Unread = r != nil && r.Unread && r.is(e.Start, e.DeliveryID, form.Sum(e.Raw))
			return e, false, filing.flush()
		}
		if err := filing.skip(got, midline); err != nil {
			return nil, false, err
		}
	}
}

// filing collects the lines that Next passes: blank ones and dead letters. A run of
// torn lines costs one sync and one cursor write, not one each.
type filing struct {
	held  *heldLane
	view  *view
	done  int64 // the cursor can move here
	first int64 // offset of the first line passed over since the last flush
	dead  []DeadEntry
	idle  bool // an entry is in flight: nothing is filed
	any   bool
}

const filingBatch = 1024

func (f *filing) skip(l line, midline bool) error {
	if f.idle {
		return nil
	}
	if !f.any {
		f.any, f.first = true, l.start
	}
	f.done = l.end
	if d, ok := f.held.deadLine(l, midline, f.view.verdict.meta.Generation); ok {
		f.dead = append(f.dead, d)
	}
	if len(f.dead) >= filingBatch || f.done-f.first > skipLimit {
		return f.flush()
	}
	return nil
}

// flush makes the dead letters durable and then moves the cursor past the collected
// lines. A few blank lines alone are not worth a write: the next acknowledgement
// moves past them.
func (f *filing) flush() error {
	if !f.any || len(f.dead) == 0 && f.done-f.first <= skipLimit {
		return nil
	}
	if err := f.held.file(f.dead); err != nil {
		return err
	}
	for _, d := range f.dead {
		f.held.note("a line of %d bytes at offset %d was filed as a dead letter: %s", d.EndOffset-d.StartOffset, d.StartOffset, d.Reason)
	}
	f.dead, f.any = nil, false
	if err := f.held.advance(f.view, f.done, nil); err != nil {
		return err
	}
	return f.held.dir.Sync()
}

// advance moves the cursor forward. last is the line before the new cursor, if
// known: then it is an acknowledged line, which Offer has synced.
//
// The sidecar is written first. After a crash between the two writes the cursor is
// merely behind, and the outbox record shows that the entry in flight is done. The
// other way round, the sidecar would not know the bytes up to the cursor if the
// inbox were then replaced.
func (h *heldLane) advance(v *view, to int64, last []byte) error {
	if to <= v.verdict.cursor {
		return nil
	}
	if last == nil {
		if err := h.dir.SyncData(v.source.file, h.name); err != nil {
			return err
		}
	}
	m := v.source.note(v.verdict.meta, to, last)
	if err := h.writeMeta(m); err != nil {
		return err
	}
	if v.verdict.cursor == 0 {
		h.begins(v.source, to)
	}
	v.verdict.cursor, v.verdict.meta = to, m
	return h.writeCursor(to)
}

// deadLine returns the dead letter for a line that must become one.
func (q *lane) deadLine(l line, midline bool, generation int64) (DeadEntry, bool) {
	if !l.tooLarge && form.Decode(l.raw, l.start == 0).Kind != form.Fragment && (!midline || len(bytes.TrimSpace(l.raw)) == 0) {
		return DeadEntry{}, false
	}
	d := DeadEntry{StartOffset: l.start, EndOffset: l.end, EntryID: l.id(), At: time.Now().UTC()}
	if l.tooLarge {
		d.Reason, d.Length = TooLarge, l.length
		d.DeliveryID = q.deliveryID(generation, l.start, []byte(l.sum))
		return d, true
	}
	d.Reason = Torn
	d.DeliveryID = q.deliveryID(generation, l.start, l.raw)
	d.setRaw(l.raw)
	return d, true
}

// quietFor is how long a last line must not have grown before it counts as
// abandoned.
const quietFor = 5 * time.Second

// complete adds the newline to a last line whose writer is gone, and reports
// whether it did.
func (h *heldLane) complete(s *source, tail line) bool {
	if len(bytes.TrimSpace(tail.raw)) == 0 && !tail.tooLarge || !quiet(s.modified, quietFor) {
		return false
	}
	if durable.WritingOf(s.file) != durable.NotWritten {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	done, err := h.appendNewline(ctx, s)
	if err != nil {
		h.note("cannot complete the last line: %v", err)
	}
	if done {
		h.note("the last line had no newline and nobody writes it: completed at %d bytes", s.size)
	}
	return done
}

func (q *lane) appendNewline(ctx context.Context, s *source) (done bool, err error) {
	file, err := q.dir.OpenFile(q.name, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := flock.OnFile(ctx, file); err != nil {
		return false, err
	}
	info, err := file.Stat()
	if err != nil || info.Size() != s.size || !info.ModTime().Equal(s.modified) {
		return false, err
	}
	newline := durable.Step{Verb: durable.Write, Name: q.name, Data: []byte{'\n'}}
	err = q.dir.Do(newline, func() error { _, err := file.Write(newline.Data); return err })
	if err == nil {
		err = q.dir.SyncData(file, q.name)
	}
	return err == nil, err
}
