package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"heartbeat/queue"
	form "heartbeat/queue/line"
)

// Entry is one queued line.
type Entry struct {
	Raw        []byte // the line without its newline, byte for byte
	Start, End int64  // its byte offsets in the file of lines; End is after the newline
	ID         string // the envelope's, or ""
	Source     string // the envelope's, or ""
	Prompt     string // the text for the session: valid UTF-8, never blank
	Checked    bool   // the envelope's mark; the hand-wired form knows no checks
	DeliveryID string // as Record.DeliveryID will be
}

// View is what a Reader finds at one moment. Close it.
type View struct {
	r      *Reader
	source *source
	at     position
	flight *flight
	stale  bool // the flight was acknowledged already
	// recordDamaged is true if there is a record, and it is not one of an entry that can be in
	// flight; sidecarDamaged likewise.
	recordDamaged, sidecarDamaged bool
	before                        *sidecar // as it was found
	found                         cursor
	disturbed                     string // what somebody else has done to what was queued, or ""
}

// Look reads the state. It returns ErrNeedsOperator, with the reason, where only a person can
// say how far the queue is done.
func (r *Reader) Look() (*View, error) {
	v := &View{r: r}
	var err error
	if v.flight, v.recordDamaged, err = r.readRecord(); err != nil {
		return nil, err
	}
	if v.found, err = r.readCursor(); err != nil {
		return nil, err
	}
	if v.before, v.sidecarDamaged, err = r.readSidecar(); err != nil {
		return nil, err
	}
	// The file of lines is opened last, so that it is at least as new as what describes it.
	if v.source, err = r.openSource(os.O_RDONLY); err != nil {
		return nil, err
	}
	if err := v.judge(); err != nil {
		v.Close()
		return nil, err
	}
	v.disturbed = v.disturbance()
	return v, nil
}

// judge finds where the queue goes on, and fits the record in flight to that.
func (v *View) judge() (err error) {
	f := v.flight
	if f != nil && f.isAside() {
		f = nil // the file of lines says nothing about it
	}
	if f != nil && v.source.file != nil {
		v.r.locate(v.source, f)
	}
	if v.at, err = v.r.judge(v.source, v.found, v.before, f); err != nil || f == nil {
		return err
	}
	v.r.rebase(v.source, f, v.at)
	v.r.fill(f, v.at.sidecar)
	v.stale = (f.here || f.Generation == v.at.sidecar.Generation) && v.at.cursor >= f.EndOffset
	foreign, err := v.r.isForeign(v.source, v.at, f)
	if foreign {
		v.flight, v.recordDamaged = nil, true
	}
	return err
}

// Close releases what Look has opened.
func (v *View) Close() { v.source.close() }

// Cursor is the offset before which everything is done.
func (v *View) Cursor() int64 { return v.at.cursor }

// Generation names the file of lines; delivery ids hold it.
func (v *View) Generation() int64 { return v.at.sidecar.Generation }

// Requeued is the history of the entry at the cursor, if it was handed over before, or nil.
func (v *View) Requeued() *History { return v.at.sidecar.Requeued }

// Archive is what heartbeat's earlier design knew of a drained file of lines that it had moved
// aside, to which a late writer may have added lines; nil: there was none.
func (v *View) Archive() json.RawMessage { return v.at.sidecar.Archive }

// InFlight is the record of the entry in flight, or nil. One that was acknowledged, though its
// record is still there, is not in flight.
func (v *View) InFlight() *Record {
	if v.flight == nil || v.stale {
		return nil
	}
	f := v.flight.Record
	return &f
}

// IsHandedByRs reports whether heartbeat-rs has recorded the entry in flight. Then it counts as
// started if IsFlagged, and was never handed over if not.
func (v *View) IsHandedByRs() bool { return v.flight != nil && v.flight.foreign }

// IsDamaged reports whether there is a record of an entry in flight that is none, or that is of
// an entry which cannot have been handed over. Then the first entry may have been.
func (v *View) IsDamaged() bool { return v.recordDamaged }

// IsFlagged reports whether heartbeat-rs's flag says that an entry was handed over.
func (r *Reader) IsFlagged() (bool, error) {
	if r.lane.Flag == "" {
		return false, nil
	}
	_, err := r.dir.Stat(r.lane.Flag)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Notes are what is to be told of where the queue goes on; none if nothing has happened to it.
func (v *View) Notes() (notes []string) {
	for _, note := range []string{v.at.note, v.disturbed} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// behind returns the offset after which lines are neither done nor in flight.
func (v *View) behind() int64 {
	if v.flight.isHere() && !v.stale && v.flight.EndOffset > v.at.cursor {
		return v.flight.EndOffset
	}
	return v.at.cursor
}

// Queued calls do for each complete line that is queued behind the entry in flight and is not
// blank, until do returns false: with its entry, or with the dead letter that it has to become.
// It returns where the last complete line ends: what stands behind that is not an entry yet.
func (v *View) Queued(do func(*Entry, *Dead) bool) (end int64, err error) {
	from := v.behind()
	if v.source.file == nil {
		return from, nil
	}
	l := linesOf(v.source.file, from, v.source.size, v.r.maxEntry, mostLines)
	for end = from; ; {
		got, err := l.read()
		if errors.Is(err, io.EOF) || err == nil && !got.complete {
			return end, nil
		}
		if err != nil {
			return end, fmt.Errorf("cannot read %q: %w", v.r.path, err)
		}
		end = got.end
		midline := v.at.midline && got.start == from
		if dead, is := v.r.deadLine(got, midline, v.Generation()); is {
			if !do(nil, &dead) {
				return end, nil
			}
		} else if e := v.r.entry(got, v.Generation()); e != nil && !do(e, nil) {
			return end, nil
		}
	}
}

// Late calls do for each complete line that came into a drained file of lines after heartbeat's
// earlier design had moved that aside, as Queued does: they are behind all that is queued. They
// have no delivery ids.
func (v *View) Late(do func(*Entry, *Dead) bool) error {
	var a struct {
		Name string `json:"name"`
		Size int64  `json:"size"` // what was acknowledged or copied of it
	}
	if len(v.Archive()) == 0 || json.Unmarshal(v.Archive(), &a) != nil || a.Size < 0 {
		return nil
	}
	file, err := v.r.dir.OpenFile(a.Name, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	for l := linesOf(file, a.Size, info.Size(), v.r.maxEntry, mostLines); ; {
		got, err := l.read()
		if err != nil {
			return ignoreEOF(err)
		}
		got.complete = true // its writer is gone
		if dead, is := v.r.deadLine(got, false, v.Generation()); is {
			dead.DeliveryID = ""
			if !do(nil, &dead) {
				return nil
			}
		} else if e := v.r.entry(got, v.Generation()); e != nil {
			if e.DeliveryID = ""; !do(e, nil) {
				return nil
			}
		}
	}
}

// entry decodes a complete line; nil when it holds no prompt to hand over.
func (r *Reader) entry(l line, generation int64) *Entry {
	if l.tooLarge || !l.complete {
		return nil
	}
	d := form.Decode(l.raw, l.start == 0)
	if d.Kind != form.Text {
		return nil
	}
	raw := bytes.Clone(l.raw)
	return &Entry{
		Raw: raw, Start: l.start, End: l.end, ID: d.ID, Source: d.Source, Prompt: d.Prompt, Checked: d.Checked,
		DeliveryID: r.deliveryID(generation, l.start, raw),
	}
}

// firstEntry returns the first entry at an offset, or nil when there is none.
func (r *Reader) firstEntry(s *source, from, generation int64) (*Entry, error) {
	if s.file == nil {
		return nil, nil
	}
	l := linesOf(s.file, from, s.size, r.maxEntry, mostLines)
	for {
		got, err := l.read()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", r.path, err)
		}
		if e := r.entry(got, generation); e != nil {
			return e, nil
		}
	}
}

// disturbance says what somebody else has done to the file of lines that may have taken queued
// entries out of it; "" if nothing shows that.
func (v *View) disturbance() string {
	s, m := v.source, v.before
	from, size := v.knownQueued()
	switch {
	case m == nil:
		return ""
	case s.file == nil:
		if _, err := v.r.dir.Stat(v.r.name); size <= from || err == nil { // it came after the look
			return ""
		}
		return "the inbox was removed"
	case m.Ino != 0 && m.Ino != s.ino:
		return "another file took the inbox's place"
	case s.size < size:
		return "the inbox was cut"
	case v.at.fresh, v.at.edited:
		return "the inbox was overwritten"
	}
	return ""
}

// knownQueued is where what is known to have been queued began and ended when the sidecar, or the
// record in flight, was written.
func (v *View) knownQueued() (from, size int64) {
	m, f := v.before, v.flight
	if m == nil {
		return 0, 0
	}
	from, size = m.Cursor, m.Size
	if f != nil && f.Generation == m.Generation {
		size = max(size, f.InboxSize)
		if !v.stale {
			from = max(from, f.EndOffset)
		}
	}
	return from, size
}

// Lost returns the dead letter for what somebody else has demonstrably taken out of the file of
// lines: only how many bytes that were, at least, is known. It is nil if nothing shows that.
func (v *View) Lost() *Dead {
	if v.disturbed == "" {
		return nil
	}
	from, size := v.knownQueued()
	lost := size - from
	if v.source.file != nil && !v.at.fresh {
		lost -= v.source.size - v.behind() // it may be the same lines
	}
	if lost <= 0 {
		return nil
	}
	return &Dead{
		EntryID: form.Sum(nil), StartOffset: from, EndOffset: size, Length: lost, Reason: queue.Lost, Cause: v.disturbed,
		DeliveryID: v.r.deliveryID(v.before.Generation, from, strconv.AppendInt(nil, size, 10)),
	}
}
