package inbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"unicode/utf8"

	form "heartbeat/queue/line"
)

// ErrTextGone means that nobody has the text of a dead letter any more.
var ErrTextGone = errors.New("its text went with the inbox; send the prompt again, or append its line from a backup of the inbox")

// RetryDead queues dead letters again, named by their delivery id, envelope's id or
// entry id, and then removes them from the dead letters. It returns how many there
// were. Fragments, and lines filed by reference, cannot be queued again: they stay,
// and the error names the first ones. When it is interrupted, the next Lock finishes it.
// Calling it again after an interruption queues nothing twice, except lines that are not
// valid UTF-8 or that only just fit max-entry: those are queued again unchanged.
func (h *Held) RetryDead(ids ...string) (int, error) {
	if err := h.check(); err != nil {
		return 0, err
	}
	r, err := h.collectRetries(ids)
	if r.more > 0 {
		r.refused = append(r.refused, fmt.Errorf("cannot queue %d more dead letters again", r.more))
	}
	if err != nil || len(r.keys) == 0 {
		return 0, errors.Join(append(r.refused, err)...)
	}
	if err := h.begin(begun{Retry: slices.Collect(maps.Keys(r.keys))}); err != nil {
		return 0, errors.Join(append(r.refused, err)...)
	}
	if err := h.appendAll(r.lines); err != nil { // the person who is told can repeat it
		return 0, errors.Join(append(r.refused, fmt.Errorf("cannot queue %d dead letters again: %w", len(r.keys), err), h.over())...)
	}
	_, err = h.PurgeDead(func(d DeadEntry) bool { return r.keys[d.key()] })
	if err == nil {
		err = h.over()
	}
	return len(r.keys), errors.Join(append(r.refused, err)...)
}

// requeueRest finishes an interrupted RetryDead. Lines of which it cannot be told whether
// they are in the inbox already stay dead letters.
func (h *Held) requeueRest(deliveries []string) error {
	if len(deliveries) == 0 {
		return nil
	}
	r, err := h.collectRetries(deliveries)
	if err != nil {
		return err
	}
	for urgent, lines := range r.lines {
		r.lines[urgent] = slices.DeleteFunc(lines, func(l retryLine) bool {
			if !l.marked {
				delete(r.keys, l.key)
			}
			return !l.marked
		})
	}
	if err := h.appendAll(r.lines); err != nil || len(r.keys) == 0 {
		return err
	}
	_, err = h.PurgeDead(func(d DeadEntry) bool { return r.keys[d.key()] })
	return err
}

func (h *Held) appendAll(lines map[bool][]retryLine) error {
	for urgent, lines := range lines {
		if err := (&heldLane{h.laneOf(urgent), h}).appendRetries(lines); err != nil {
			return err
		}
	}
	return nil
}

// retries are dead letters to queue again.
type retries struct {
	lines   map[bool][]retryLine // :: of the urgent lane → lines
	keys    map[string]bool
	refused []error
	more    int // those that were refused besides
}

// mostRefused is how many dead letters an error names that cannot be queued again.
const mostRefused = 10

// refuse notes that a dead letter cannot be queued again.
func (r *retries) refuse(d *DeadEntry) {
	if len(r.refused) == mostRefused {
		r.more++
		return
	}
	why := errors.New("it is " + string(d.Reason))
	if d.Reason == Lost {
		why = ErrTextGone
	}
	r.refused = append(r.refused, fmt.Errorf("cannot queue dead letter %q again: %w", cmp.Or(d.ID, d.DeliveryID, d.EntryID), why))
}

// retryLine is a line to append. When it is marked, only an interrupted retry can
// have put its bytes into the inbox.
type retryLine struct {
	key    string
	raw    []byte
	marked bool
}

func (q *Queue) collectRetries(ids []string) (retries, error) {
	r := retries{keys: map[string]bool{}, lines: map[bool][]retryLine{}}
	_, err := q.eachDead(&Mark{}, mostRecords, func(_ []byte, d *DeadEntry) bool {
		if d == nil || !slices.ContainsFunc(ids, d.Named) || r.keys[d.key()] {
			return true
		}
		raw := d.Raw()
		if !d.Retryable() {
			r.refuse(d)
			return true
		}
		r.keys[d.key()] = true
		to := d.Urgent && !q.single()
		r.lines[to] = append(r.lines[to], q.retryOf(d, raw))
		return true
	})
	return r, err
}

// retryOf returns the line that queues a dead letter again: an envelope that names
// the delivery, with the prompt, id and source that it had.
func (q *Queue) retryOf(d *DeadEntry, raw []byte) retryLine {
	got := form.Decode(raw, d.StartOffset == 0)
	line, err := form.Encode(form.Envelope{ID: got.ID, Source: got.Source, RetryOf: d.key(), Checked: got.Checked, Prompt: got.Prompt})
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if err != nil || got.Kind != form.Text || !utf8.Valid(raw) || int64(len(line)) > q.maxEntry {
		return retryLine{key: d.key(), raw: raw}
	}
	return retryLine{key: d.key(), raw: line, marked: true}
}

// appendRetries appends, with one write, the lines that are not in the inbox yet.
func (h *heldLane) appendRetries(lines []retryLine) error {
	missing := map[string]bool{} // :: marked line's entry id → it has to be appended
	for _, l := range lines {
		if l.marked {
			missing[form.Sum(l.raw)] = true
		}
	}
	if err := h.strikeOut(missing); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, l := range lines {
		if !l.marked || missing[form.Sum(l.raw)] {
			b.Write(append(bytes.Clone(l.raw), '\n'))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return h.appendRaw(bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
}

// strikeOut removes the lines that are already in the inbox from missing.
func (q *lane) strikeOut(missing map[string]bool) error {
	s, err := q.openSource(os.O_RDONLY)
	if err != nil || s.file == nil || len(missing) == 0 {
		return err
	}
	defer s.close()
	l := q.stored(s)
	for {
		got, err := l.read()
		if err != nil {
			return ignoreEOF(err)
		}
		if bytes.Contains(got.raw, []byte(`"retry_of":`)) {
			delete(missing, got.id())
		}
	}
}
