package inbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// StartAt applies a person's answer to ErrNeedsOperator (see Question): the queue
// continues at an offset of the lane that asks, where a line must begin. Everything before it counts as
// done, and the rest is handed over. If the entry in flight is at or after the
// offset, it is queued again in its place, and its attempts are forgotten.
func (h *Held) StartAt(offset int64) error {
	to := h.inbox()
	if l, _ := h.asking(); l != nil {
		to = l
	}
	return (&heldLane{to, h}).startAt(offset)
}

func (h *heldLane) startAt(offset int64) error {
	if err := h.check(); err != nil {
		return err
	}
	s, err := h.openSource(os.O_RDONLY)
	if err != nil {
		return err
	}
	defer s.close()
	if offset < 0 || offset > s.size || !s.startsLine(offset) {
		return fmt.Errorf("cannot go on at offset %d of %q: no line begins there", offset, h.path)
	}
	f, err := h.flightHere(s)
	if err != nil {
		return err
	}
	if err := h.fileLeftOut(s, f, offset); err != nil {
		return err
	}
	if f != nil && f.here && offset < f.StartOffset {
		if err := h.clearFlight(); err != nil {
			return err
		}
	}
	if err := h.moveCursor(s, offset); err != nil {
		return err
	}
	if err := h.writeMeta(s.note(meta{Generation: newGeneration()}, offset, nil)); err != nil {
		return err
	}
	return h.dir.Sync()
}

// fileLeftOut files the entries that were queued and do not stand behind an offset at
// which a person lets the queue continue: whoever says that they are done can delete
// them.
func (h *heldLane) fileLeftOut(s *source, f *flight, offset int64) error {
	m, _, err := h.readMeta()
	if err != nil {
		return err
	}
	c, err := h.readCursor()
	if err != nil {
		return err
	}
	v := &view{source: s, flight: f, before: m, cursorFile: c, verdict: verdict{cursor: offset}}
	if v.disturbed = h.disturbed(v); v.disturbed == "" {
		return nil
	}
	return h.fileMissing(v)
}

// Settled reports whether Settle has nothing to do. In a queue that nobody has worked
// on yet delivery ids change with each look, until Settle; what somebody has taken out of
// the inbox has no dead letters before; and what a killed process has begun is finished by
// the next Lock.
func (q *Queue) Settled() (bool, error) {
	if _, err := q.dir.Stat(q.begunFile()); !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, l := range q.lanes() {
		if settled, err := l.settled(); !settled || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (q *lane) settled() (bool, error) {
	v, err := q.look()
	if err != nil {
		return false, err
	}
	defer v.close()
	return !v.verdict.changed && v.disturbed == "", nil
}

// Settle writes down what reading the queue found, as every change to the queue
// does.
func (h *Held) Settle() error {
	for _, l := range h.lanes() {
		v, err := l.settle()
		if err != nil {
			return err
		}
		v.close()
	}
	return nil
}

// key identifies the delivery of a record; heartbeat-rs's records have no delivery
// id.
func (d *DeadEntry) key() string {
	if d.DeliveryID != "" {
		return d.DeliveryID
	}
	return fmt.Sprintf("%s@%d", d.EntryID, d.StartOffset)
}

// PurgeDead removes the dead letters that drop selects and returns how many there
// were. Lines that are not records stay.
func (h *Held) PurgeDead(drop func(DeadEntry) bool) (int, error) {
	if err := h.check(); err != nil {
		return 0, err
	}
	if _, err := h.dir.Stat(DeadFile); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	n := 0
	err := h.rewriteDead(func(raw []byte, d *DeadEntry) ([]byte, error) {
		if d != nil && drop(*d) {
			n++
			return nil, nil
		}
		return append(raw, '\n'), nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// rewriteDead durably replaces the dead letters, line by line. d is nil for a line that is no
// record.
func (h *Held) rewriteDead(line func(raw []byte, d *DeadEntry) ([]byte, error)) error {
	err := h.dir.ReplaceFunc(DeadFile, true, func(w io.Writer) error {
		var writeErr error
		_, err := h.eachDead(&Mark{}, mostRecords, func(raw []byte, d *DeadEntry) bool {
			if raw == nil {
				writeErr = errors.New("cannot rewrite the dead letters: one of their lines is too large to be a record")
				return false
			}
			if raw, writeErr = line(raw, d); writeErr == nil {
				_, writeErr = w.Write(raw)
			}
			return writeErr == nil
		})
		return errors.Join(err, writeErr)
	})
	if err != nil {
		return err
	}
	return h.dir.Sync()
}

// Textless reports whether it is lost together with its text.
func (d *DeadEntry) Textless() bool { return d.Reason == Lost && d.Raw() == nil }

// Recall puts what was sent into the dead letters that are lost together with their text, so
// that they can be queued again.
func (h *Held) Recall(all ...Sent) error {
	if err := h.check(); err != nil || len(all) == 0 {
		return err
	}
	texts := make(map[string]string, len(all))
	for _, s := range all {
		texts[s.ID] = s.Prompt
	}
	return h.rewriteDead(func(raw []byte, d *DeadEntry) ([]byte, error) {
		if d == nil || !d.Textless() || texts[d.ID] == "" {
			return append(raw, '\n'), nil
		}
		line, err := SentLine(d.ID, texts[d.ID])
		if err != nil {
			return nil, err
		}
		d.setRaw(line)
		return encodeJSON(d)
	})
}
