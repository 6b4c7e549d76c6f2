package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"heartbeat/queue"
	form "heartbeat/queue/line"
)

// Record is the content of .in-flight: heartbeat-rs's five fields, then ours.
type Record struct {
	EntryID     string    `json:"entry_id"` // sha256 of the line, hex
	StartOffset int64     `json:"start_offset"`
	EndOffset   int64     `json:"end_offset"`
	RawLine     string    `json:"raw_line"`
	DeliveredAt time.Time `json:"delivered_at"`

	// DeliveryID is 12 hex digits of sha256(lane, generation, start offset, line): the same for
	// each attempt of one entry, different for an equal line elsewhere.
	DeliveryID string `json:"delivery_id,omitempty"`
	// RawBase64 holds the line's bytes when they are not valid UTF-8.
	RawBase64 string `json:"raw_b64,omitempty"`
	// ID and Source are those of the line, whatever the record says.
	ID     string      `json:"id,omitempty"`
	Source string      `json:"source,omitempty"`
	State  queue.State `json:"state,omitempty"`
	Tries
	Offering
	Proving
	// Generation names the file that the offsets belong to; InboxSize is how large it was when
	// the entry was offered.
	Generation int64 `json:"generation,omitempty"`
	InboxSize  int64 `json:"inbox_size,omitempty"`
}

// Tries counts how often an entry was handed over.
type Tries struct {
	Attempt int `json:"attempt,omitempty"` // hand-overs, from 1
	// Repeats counts the interruptions that used up an attempt.
	Repeats int `json:"repeats,omitempty"`
	// Untouched is true while no session can have worked on an earlier attempt. On a first
	// attempt it means nothing.
	Untouched bool `json:"untouched,omitempty"`
	// Unread, of heartbeat's earlier design: a session was handed over the name of a file with
	// it, and has not read that.
	Unread bool `json:"unread,omitempty"`
}

// Offering says to whom and how an entry is handed over.
type Offering struct {
	Via      queue.Via `json:"via,omitempty"`
	Session  string    `json:"session,omitempty"`
	PromptID string    `json:"prompt_id,omitempty"` // the client's, as far as known
	// Transcript and TranscriptOffset say where the client's transcript would show it.
	Transcript       string `json:"transcript,omitempty"`
	TranscriptOffset int64  `json:"transcript_offset,omitempty"`
	// Unwatched is true where no hook reports tools, as in the hand-wired form: then taken
	// counts as started.
	Unwatched bool `json:"unwatched,omitempty"`
	// Unmarked is true where a repeat is handed over without a word that it is one.
	Unmarked bool   `json:"unmarked,omitempty"`
	Client   string `json:"client,omitempty"` // names the client's process
	// File is the file whose name is handed over in place of a prompt that the client would cut,
	// or "".
	File string `json:"file,omitempty"`
}

// Proving is what heartbeat's earlier design recorded of checks, people and failures. It is kept
// and not interpreted.
type Proving struct {
	Checked     bool            `json:"checked,omitempty"`
	Iteration   int             `json:"iteration,omitempty"`
	Most        int             `json:"most,omitempty"`
	Check       int             `json:"check,omitempty"`
	Claim       json.RawMessage `json:"claim,omitempty"`
	Output      string          `json:"output,omitempty"`
	Answers     string          `json:"answers,omitempty"`
	Interrupted queue.State     `json:"interrupted,omitempty"`
	Failure     string          `json:"failure,omitempty"`
	Cancel      queue.Cancel    `json:"cancel,omitempty"`
	// Aside is there once the entry was set aside: then the file of lines says nothing about it.
	Aside   json.RawMessage `json:"aside,omitempty"`
	Renamed bool            `json:"renamed,omitempty"`
}

func (p *Proving) isValid() bool {
	return p.Iteration >= 0 && p.Check >= 0 && p.Most >= 0 && (p.Interrupted == "" || p.Interrupted.IsInFlight())
}

// IsSameOffer reports whether g is the same offer as f and has no proof of arrival yet.
func (f *Record) IsSameOffer(g *Record) bool {
	return g != nil && g.State == queue.Offered && g.DeliveryID == f.DeliveryID && g.Attempt == f.Attempt && g.Session == f.Session
}

// Line returns the bytes of the entry's line.
func (f *Record) Line() []byte {
	return form.FromJSON(f.RawLine, f.RawBase64)
}

// Prompt returns the text of the entry's line.
func (f *Record) Prompt() string { return form.Decode(f.Line(), f.StartOffset == 0).Prompt }

// Entry returns the entry in flight as it is known of any queue, in the lane that is not urgent.
func (f *Record) Entry() queue.Entry {
	return queue.Entry{
		Delivery: f.DeliveryID, EntryID: f.EntryID, ID: f.ID, Source: f.Source, State: f.State, Lane: queue.Normal, Tries: queue.Tries(f.Tries),
		Proving: queue.Proving{Checked: f.Checked, Iteration: f.Iteration, Most: f.Most, Check: f.Check, Interrupted: f.Interrupted},
		Handover: queue.Handover{
			Session: f.Session, Via: f.Via, At: f.DeliveredAt, PromptID: f.PromptID,
			Transcript: f.Transcript, Offset: f.TranscriptOffset, File: f.File, Unmarked: f.Unmarked,
		},
		Failure: f.Failure, Cancel: f.Cancel,
	}
}

// Given returns the entry in flight with what its text is made of.
func (f *Record) Given() *queue.Given {
	return &queue.Given{
		Entry: f.Entry(), Text: queue.Text{Prompt: f.Prompt(), Line: f.Line()}, Shown: queue.Shown{Output: f.Output, Answers: f.Answers},
	}
}

// isRuns reports whether only heartbeat run can finish the entry: its work is checked, or it was
// set aside.
func (f *Record) isRuns() bool {
	return f.Checked || f.State == queue.Checking || f.State == queue.Unproven || f.isAside()
}

func (f *Record) isAside() bool { return len(f.Aside) > 0 }

// flight is the entry in flight, and what is known about it besides its record.
type flight struct {
	Record
	raw     []byte // the line's bytes
	foreign bool   // heartbeat-rs wrote the record
	here    bool   // the line stands at its offsets in the file that is there now
}

// encloses reports whether a cursor is between the entry's ends, where none can be.
func (f *flight) encloses(cursor int64) bool {
	return f != nil && f.here && cursor > f.StartOffset && cursor < f.EndOffset
}

func (f *flight) isHere() bool { return f != nil && f.here }

// recordRest bounds what a record holds besides its line: of what heartbeat's earlier design has
// kept beside it, JSON makes six times as much.
const recordRest = 1 << 20

// readRecord reads the record. damaged means that the file exists but is not one.
func (r *Reader) readRecord() (f *flight, damaged bool, err error) {
	return readOwn(r.dir, r.lane.Record, 16*r.maxEntry+recordRest, parseRecord)
}

// RecordOf reads a record that stands in another file, in which heartbeat's earlier design kept
// it; nil: it is none.
func RecordOf(data []byte) *Record {
	f := parseRecord(data)
	if f == nil || f.foreign {
		return nil
	}
	return &f.Record
}

// parseRecord returns nil for data that is not a record.
func parseRecord(data []byte) *flight {
	type fields Record
	var got struct {
		fields
		DeliveredAt string `json:"delivered_at"`
	}
	if json.Unmarshal(data, &got) != nil {
		return nil
	}
	f := &flight{Record: Record(got.fields)}
	f.DeliveredAt, _ = time.Parse(time.RFC3339, got.DeliveredAt) // heartbeat-rs's is only for reading
	if _, err := base64.StdEncoding.DecodeString(f.RawBase64); err != nil {
		return nil
	}
	f.raw = f.Line()
	if f.StartOffset < 0 || f.EndOffset <= f.StartOffset || len(bytes.TrimSpace(f.raw)) == 0 || bytes.IndexByte(f.raw, '\n') >= 0 {
		return nil
	}
	if f.State == "" && f.DeliveryID == "" {
		f.foreign = true
		return f
	}
	if !f.State.IsInFlight() || f.DeliveryID == "" || f.EntryID != form.Sum(f.raw) || f.Attempt < 1 || f.Repeats < 0 || !f.isValid() {
		return nil
	}
	d := form.Decode(f.raw, f.StartOffset == 0)
	f.ID, f.Source = d.ID, d.Source
	return f
}

// locate checks whether the entry's line is at its offsets.
func (r *Reader) locate(s *source, f *flight) {
	if f.EndOffset-f.StartOffset > 2*r.maxEntry+int64(len(f.raw)) {
		return
	}
	data, err := s.bytes(f.StartOffset, f.EndOffset)
	if err != nil || !f.isLine(data) {
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

func (f *flight) isLine(data []byte) bool {
	if !f.foreign {
		return len(data) == len(f.raw)+1 && data[len(data)-1] == '\n' && bytes.Equal(data[:len(data)-1], f.raw)
	}
	// heartbeat-rs stores the line trimmed and converted to valid UTF-8.
	return bytes.Equal(bytes.TrimSpace(data), bytes.TrimSpace(f.raw)) || squash(string(data)) == squash(f.RawLine)
}

// squash makes different replacements of invalid UTF-8 comparable.
func squash(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

// rebase moves the record's offsets to the first line at the cursor when that is its line: the
// file was edited around it.
func (r *Reader) rebase(s *source, f *flight, p position) {
	if f.here || s.file == nil || !p.edited && f.ID == "" {
		return
	}
	l := linesOf(s.file, p.cursor, s.size, r.maxEntry, mostLines)
	for {
		got, err := l.read()
		if err != nil || !got.complete {
			return
		}
		if got.isBlank() {
			continue
		}
		if !got.tooLarge && bytes.Equal(got.raw, f.raw) {
			f.StartOffset, f.EndOffset, f.here = got.start, got.end, true
			f.Generation = p.sidecar.Generation
		}
		return
	}
}

// fill adds what heartbeat-rs's record lacks.
func (r *Reader) fill(f *flight, m sidecar) {
	if !f.foreign {
		return
	}
	d := form.Decode(f.raw, f.StartOffset == 0)
	f.ID, f.Source = d.ID, d.Source
	f.State, f.Attempt = queue.Offered, 1
	if f.here {
		f.Generation = m.Generation
	}
	f.DeliveryID = r.deliveryID(f.Generation, f.StartOffset, f.raw)
}

// own makes heartbeat-rs's record ours.
func (f *flight) own() {
	if f.foreign {
		f.foreign, f.EntryID = false, form.Sum(f.raw)
	}
}

// newFlight returns the record of an entry that is being offered.
func newFlight(e *Entry, generation int64) *flight {
	f := &flight{raw: e.Raw, here: true}
	f.Record = Record{
		EntryID: form.Sum(e.Raw), StartOffset: e.Start, EndOffset: e.End, RawLine: string(e.Raw),
		DeliveryID: e.DeliveryID, ID: e.ID, Source: e.Source, State: queue.Offered, Tries: Tries{Attempt: 1}, Generation: generation,
	}
	f.RawLine, f.RawBase64 = form.ToJSON(e.Raw)
	return f
}

// resume restores the counts from the entry's last time in flight.
func (f *flight) resume(q *History) {
	if q.Is(f.StartOffset, f.DeliveryID, f.EntryID) {
		f.Tries, f.Proving = q.Tries, q.Proving
		f.Attempt++
	}
}

// offerTo records to whom the entry is handed over.
func (f *flight) offerTo(o Offering) {
	f.State, f.Offering, f.DeliveredAt = queue.Offered, o, time.Now().UTC()
	if f.File != "" {
		f.Unread = false // this file is not known yet
	}
}

// deliveryID names one line of one file of the lane.
func (r *Reader) deliveryID(generation, start int64, raw []byte) string {
	h := sha256.New()
	var n []byte
	if r.lane.Urgent {
		n = append(n, "urgent\x00"...)
	}
	n = append(strconv.AppendInt(n, generation, 10), 0)
	n = append(strconv.AppendInt(n, start, 10), 0)
	h.Write(n)
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// encode returns v as one line of JSON with its newline, without HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode a record: %v", err)
	}
	return b.Bytes(), nil
}
