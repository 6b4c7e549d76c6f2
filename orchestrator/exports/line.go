package exports

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/orchestrator/entries"
	"heartbeat/queue"
	"heartbeat/queue/line"
)

// Delivery is a line of outbox.jsonl, without what seals it: an entry that is done.
type Delivery struct {
	DeliveryID     string    `json:"delivery_id"`
	EntryID        string    `json:"entry_id"`
	ID             string    `json:"id,omitempty"`
	Source         string    `json:"source,omitempty"`
	Session        string    `json:"session,omitempty"`
	Attempt        int       `json:"attempt"`
	DeliveredAt    time.Time `json:"delivered_at"`
	AcknowledgedAt time.Time `json:"acknowledged_at"`
	Reply          string    `json:"reply"`
	ReplyCut       bool      `json:"reply_cut,omitempty"`
	Abandoned      []string  `json:"abandoned,omitempty"`
	Verdict        *Proven   `json:"verdict,omitempty"` // nil: nothing had to be proved
	Urgent         bool      `json:"urgent,omitempty"`
}

// Proven says what has proved that the work on an entry is done.
type Proven struct {
	By        string `json:"by,omitempty"`
	Iteration int    `json:"iteration"`
	TookMS    int64  `json:"took_ms,omitempty"`
}

// DeadLetter is a line of .dead-letter.jsonl, without what seals it: an entry that was given up.
// Its first five fields are heartbeat-rs's; the offsets are 0, since no inbox holds it.
type DeadLetter struct {
	EntryID     string    `json:"entry_id"`
	StartOffset int64     `json:"start_offset"`
	EndOffset   int64     `json:"end_offset"`
	RawLine     string    `json:"raw_line"` // "": the entry is too large
	DeliveredAt time.Time `json:"delivered_at"`

	DeliveryID string       `json:"delivery_id,omitempty"`
	RawBase64  string       `json:"raw_b64,omitempty"` // the line, where it is no valid UTF-8
	ID         string       `json:"id,omitempty"`
	Source     string       `json:"source,omitempty"`
	Reason     queue.Reason `json:"reason"`
	// Attempts are all hand-overs, Counted the interruptions that used up one of max-attempts.
	Attempts int       `json:"attempts"`
	Counted  int       `json:"counted,omitempty"`
	At       time.Time `json:"at"`
	Length   int64     `json:"length,omitempty"`  // bytes of an entry that is not here whole
	Excerpt  string    `json:"excerpt,omitempty"` // the beginning of an entry that is too large
	Urgent   bool      `json:"urgent,omitempty"`
	Cause    string    `json:"cause,omitempty"` // what happened, where that is known
	// Iterations is how often its work was checked, Output what the last check said.
	Iterations int    `json:"iterations,omitempty"`
	Output     string `json:"output,omitempty"`
}

// DeliveryOf returns what a line says of an entry that is done.
func DeliveryOf(e *entries.Ended) Delivery {
	d := Delivery{
		DeliveryID: e.Delivery, EntryID: e.EntryID, ID: e.ID, Source: e.Source, Session: e.Handover.Session,
		Attempt: e.Attempt, DeliveredAt: utc(e.Handover.At), AcknowledgedAt: utc(e.Ended), Urgent: e.Lane == queue.Urgent,
	}
	if e.Reply != nil {
		d.Session, d.Reply, d.ReplyCut, d.Abandoned = e.Reply.Session, e.Reply.Text, e.Reply.Cut, e.Reply.Abandoned
	}
	if v := e.Verdict; v != nil && v.Passed {
		d.Verdict = &Proven{By: v.By, Iteration: v.Iteration, TookMS: v.Took.Milliseconds()}
	}
	return d
}

// DeadLetterOf returns what a line says of an entry that is dead.
func DeadLetterOf(e *entries.Ended) (DeadLetter, error) {
	d := DeadLetter{
		EntryID: e.EntryID, DeliveredAt: utc(e.Handover.At), DeliveryID: e.Delivery, ID: e.ID, Source: e.Source, Reason: e.Reason,
		Attempts: e.Attempt, Counted: e.Repeats, At: utc(e.Ended), Urgent: e.Lane == queue.Urgent, Cause: e.Cause,
		Iterations: e.Iteration, Output: e.Output,
	}
	if e.Reason == queue.TooLarge {
		d.Excerpt, d.Length = e.Prompt, e.Length
		return d, nil
	}
	raw := e.Line
	if len(raw) == 0 {
		var err error
		if raw, err = line.Encode(line.Envelope{ID: e.ID, Source: e.Source, Checked: e.Checked, Prompt: e.Prompt}); err != nil {
			return d, err
		}
		raw = bytes.TrimSuffix(raw, []byte{'\n'})
	}
	d.RawLine, d.RawBase64 = line.ToJSON(raw)
	return d, nil
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// sealer makes the lines of a store's exports, and knows them again.
type sealer struct {
	store string // its id
	key   []byte
}

// seal is what a line says of where it comes from, before its MAC.
type seal struct {
	Store string `json:"store"`
	N     int64  `json:"n"`
}

// macKey is the last key of a line. What stands before it is what the MAC is of.
const macKey, macEnd = `,"mac":"`, `"}`

const macSize = len(macKey) + 2*sha256.Size + len(macEnd)

// line returns the line of an end, with its newline.
func (s sealer) line(f kind, e *entries.Ended) (raw []byte, err error) {
	of := seal{s.store, e.N}
	var says any
	if f.state == queue.Done {
		says = struct {
			Delivery
			seal
		}{DeliveryOf(e), of}
	} else {
		var d DeadLetter
		if d, err = DeadLetterOf(e); err != nil {
			return nil, err
		}
		says = struct {
			DeadLetter
			seal
		}{d, of}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(says); err != nil {
		return nil, fmt.Errorf("cannot write a line of %s: %w", f.name, err)
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
	mac := s.mac(f, e.Agent, body)
	body = append(body, macKey...)
	body = hex.AppendEncode(body, mac)
	return append(body, macEnd+"\n"...), nil
}

// mac returns the MAC of a line, given up to macKey, which says whose store's it is.
func (s sealer) mac(f kind, agent string, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "%s\x00%s\x00", f.name, agent) // it never fails (hash.Hash)
	h.Write(body)
	return h.Sum(nil)
}

// isOurs reports whether a line, without its newline, is of this store's export of an agent.
func (s sealer) isOurs(f kind, agent string, raw []byte) bool {
	at := len(raw) - macSize
	if at < 0 || string(raw[at:at+len(macKey)]) != macKey || len(s.key) == 0 {
		return false
	}
	said, err := hex.DecodeString(string(raw[at+len(macKey) : len(raw)-len(macEnd)]))
	return err == nil && hmac.Equal(said, s.mac(f, agent, raw[:at]))
}
