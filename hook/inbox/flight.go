package inbox

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	form "heartbeat/queue/line"
)

// flight is the entry in flight, and what is known about it besides its record.
type flight struct {
	InFlight
	raw     []byte // the line's bytes
	foreign bool   // heartbeat-rs wrote the record
	here    bool   // the line stands at its offsets in the inbox that is there now
}

// inside reports whether a cursor is between the entry's ends, where no valid
// cursor can be.
func (f *flight) inside(cursor int64) bool { return cursor > f.StartOffset && cursor < f.EndOffset }

// flightRest bounds what a record holds besides its line: the agent's words and a
// check's output, of which JSON makes six times as much.
const flightRest = 64<<10 + 6*(MaxReply+MaxShown+MaxAnswers+maxAbandoned*maxTask)

// readFlight reads .in-flight. corrupt means that the file exists but is not a
// record of an entry.
func (q *lane) readFlight() (f *flight, corrupt bool, err error) {
	f, corrupt, err = readOwn(q.dir, q.flight, 16*q.maxEntry+flightRest, parseFlight)
	if f != nil {
		f.Urgent = q.urgent
	}
	return f, corrupt, err
}

// parseFlight returns nil for data that is not a record.
func parseFlight(data []byte) *flight {
	type fields InFlight
	var r struct {
		fields
		DeliveredAt string `json:"delivered_at"`
	}
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	f := &flight{InFlight: InFlight(r.fields)}
	f.DeliveredAt, _ = time.Parse(time.RFC3339, r.DeliveredAt) // heartbeat-rs's is only for reading
	f.raw = []byte(f.RawLine)
	if f.RawBase64 != "" {
		raw, err := base64.StdEncoding.DecodeString(f.RawBase64)
		if err != nil {
			return nil
		}
		f.raw = raw
	}
	if f.StartOffset < 0 || f.EndOffset <= f.StartOffset || len(bytes.TrimSpace(f.raw)) == 0 ||
		bytes.IndexByte(f.raw, '\n') >= 0 {
		return nil
	}
	if f.State == "" && f.DeliveryID == "" {
		f.foreign = true
		return f
	}
	if !f.valid() {
		return nil
	}
	d := form.Decode(f.raw, f.StartOffset == 0)
	f.Renamed = f.Renamed || f.ID != d.ID || f.Source != d.Source
	f.ID, f.Source = d.ID, d.Source
	return f
}

func (f *flight) valid() bool {
	return f.State.rank() > 0 && f.DeliveryID != "" && f.EntryID == form.Sum(f.raw) && f.Attempt >= 1 && f.Repeats >= 0 && f.Proving.valid()
}

// rank orders the states; 0 is an unknown state.
func (s State) rank() int {
	switch s {
	case Offered:
		return 1
	case Taken:
		return 2
	case Started:
		return 3
	case Background:
		return 4
	case Checking:
		return 5
	case Unproven:
		return 6
	}
	return 0
}

// locateFlight checks whether the entry's line is at its offsets.
func (q *lane) locateFlight(s *source, f *flight) {
	length := f.EndOffset - f.StartOffset
	if length > 2*q.maxEntry+int64(len(f.raw)) {
		return
	}
	data, err := s.bytes(f.StartOffset, f.EndOffset)
	if err != nil || !sameLine(data, f) {
		return
	}
	f.here = true
	if !f.foreign || bytes.HasSuffix(data, []byte{'\n'}) {
		return
	}
	// heartbeat-rs accepts a last line without its newline.
	if next, err := s.bytes(f.EndOffset, f.EndOffset+1); err == nil && next[0] == '\n' {
		f.EndOffset++
	}
}

// marksOwn says of a record whether its delivery id is that of the line that stands where
// it says, whatever else it says.
func (q *lane) marksOwn(s *source, f *flight) {
	if f == nil || s.file == nil {
		return
	}
	line := *f
	if !line.here {
		q.locateFlight(s, &line)
	}
	f.Own = line.here && q.deliveryID(f.Generation, f.StartOffset, f.raw) == f.DeliveryID
}

func sameLine(data []byte, f *flight) bool {
	if !f.foreign {
		return len(data) == len(f.raw)+1 && data[len(data)-1] == '\n' && bytes.Equal(data[:len(data)-1], f.raw)
	}
	// heartbeat-rs stores the line trimmed and converted to valid UTF-8.
	got := bytes.TrimSpace(data)
	return bytes.Equal(got, bytes.TrimSpace(f.raw)) || squash(string(got)) == squash(f.RawLine)
}

// squash makes different replacements of invalid UTF-8 comparable.
func squash(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

// rebase moves the record's offsets to the first line at the cursor when that is
// its line: the inbox was edited around it.
func (q *lane) rebase(s *source, f *flight, v verdict) {
	if f == nil || f.here || s.file == nil || !v.edited && f.ID == "" {
		return
	}
	l := q.lines(s.file, v.cursor, s.size, q.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if err != nil || !got.complete {
			return
		}
		if len(bytes.TrimSpace(got.raw)) == 0 && !got.tooLarge {
			continue
		}
		if !got.tooLarge && bytes.Equal(got.raw, f.raw) {
			f.StartOffset, f.EndOffset, f.here = got.start, got.end, true
			f.Generation = v.meta.Generation
		}
		return
	}
}

// adopt fills in what heartbeat-rs's record lacks.
func (q *lane) adopt(f *flight, m meta) {
	if !f.foreign {
		return
	}
	d := form.Decode(f.raw, f.StartOffset == 0)
	f.ID, f.Source = d.ID, d.Source
	f.State, f.Attempt = Offered, 1
	if f.here {
		f.Generation = m.Generation
	}
	f.DeliveryID = q.deliveryID(f.Generation, f.StartOffset, f.raw)
}

// entry returns the queued line that the flight came from.
func (f *flight) entry() *Entry {
	d := form.Decode(f.raw, f.StartOffset == 0)
	return &Entry{
		Raw: f.raw, Start: f.StartOffset, End: f.EndOffset,
		ID: f.ID, Source: f.Source, Prompt: d.Prompt, DeliveryID: f.DeliveryID, Checked: d.Checked, Urgent: f.Urgent,
	}
}

// Prompt returns the prompt that was read from the entry's line, or "" when the
// record does not hold the line.
func (f *InFlight) Prompt() string { return form.Decode(f.Line(), f.StartOffset == 0).Prompt }

// Line returns the bytes of the entry's line, as far as the record holds them.
func (f *InFlight) Line() []byte {
	return form.FromJSON(f.RawLine, f.RawBase64)
}

// newFlight returns the record of an entry that is being offered.
func (q *lane) newFlight(e *Entry, generation int64) *flight {
	f := &flight{raw: e.Raw, here: true}
	f.InFlight = InFlight{
		Own:         true,
		EntryID:     form.Sum(e.Raw),
		StartOffset: e.Start,
		EndOffset:   e.End,
		DeliveryID:  q.deliveryID(generation, e.Start, e.Raw),
		ID:          e.ID,
		Source:      e.Source,
		State:       Offered,
		Tries:       Tries{Attempt: 1},
		Offering:    Offering{Checked: e.Checked},
		Generation:  generation,
		Urgent:      q.urgent,
	}
	f.RawLine, f.RawBase64 = form.ToJSON(e.Raw)
	return f
}

// offer records to whom the entry is handed over.
func (f *flight) offer(o Offering) {
	f.State, f.Offering = Offered, o
	if f.Iteration == 0 && f.Checked {
		f.Iteration = 1
	}
	f.Failure, f.DeliveredAt = "", time.Now().UTC()
	if f.File != "" {
		f.Unread = false // this one is not known yet
	}
}

// writeFlight makes the record durable.
func (h *heldLane) writeFlight(f *flight) error {
	data, err := encodeJSON(f.InFlight)
	if err != nil {
		return err
	}
	return h.dir.Replace(h.flight, data)
}

// writeOffer is writeFlight plus heartbeat-rs's flag file. When it fails, the entry
// is not handed over: writeOffer undoes what it wrote, and before (nil: none) is in
// flight again.
func (h *heldLane) writeOffer(f, before *flight) error {
	data, err := encodeJSON(f.InFlight)
	if err != nil {
		return err
	}
	if err = h.dir.Swap(h.flight, data); err == nil {
		err = h.flag()
	}
	if err == nil {
		err = h.dir.Sync()
	}
	if err == nil {
		return nil
	}
	if before == nil {
		_ = h.clearFlight() // else the entry counts as offered, and is offered again
	} else if data, encodeErr := encodeJSON(before.InFlight); encodeErr == nil {
		_ = h.dir.Swap(h.flight, data)
	}
	return err
}

// flag makes heartbeat-rs's flag file.
func (h *heldLane) flag() error {
	if h.responded == "" {
		return nil
	}
	return h.dir.Touch(h.responded)
}

// clearFlight removes the record. The removal needs no sync: if the record comes
// back after a power cut, the cursor or the outbox shows that it is done.
func (h *heldLane) clearFlight() error {
	if h.responded == "" {
		return h.dir.Remove(h.flight)
	}
	err := h.dir.Remove(h.responded)
	if info, statErr := h.dir.Stat(h.responded); statErr == nil && info.IsDir() {
		err = h.quarantine(h.responded) // nothing of ours, and no reason to stop
	}
	return errors.Join(h.dir.Remove(h.flight), err)
}

// encodeJSON encodes v as one line with its newline, without HTML escapes.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode a record: %v", err)
	}
	return b.Bytes(), nil
}

// firstEntry returns the first entry at an offset, or nil when there is none. It
// changes nothing.
func (q *lane) firstEntry(s *source, from int64, generation int64) (*Entry, error) {
	if s.file == nil {
		return nil, nil
	}
	l := q.lines(s.file, from, s.size, q.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if errors.Is(err, io.EOF) || err == nil && !got.complete {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %v", q.path, err)
		}
		if e := q.entry(got, generation); e != nil {
			return e, nil
		}
	}
}

// entry decodes a complete line; it returns nil when the line holds no prompt to
// hand over.
func (q *lane) entry(l line, generation int64) *Entry {
	if l.tooLarge {
		return nil
	}
	d := form.Decode(l.raw, l.start == 0)
	if d.Kind != form.Text {
		return nil
	}
	raw := bytes.Clone(l.raw)
	return &Entry{
		Raw: raw, Start: l.start, End: l.end, ID: d.ID, Source: d.Source, Prompt: d.Prompt, Checked: d.Checked,
		DeliveryID: q.deliveryID(generation, l.start, raw), Urgent: q.urgent,
	}
}
