package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// envelope is the form in which send and triggers write an entry. The key heartbeat
// comes first, so that readers recognise it.
type envelope struct {
	Heartbeat int    `json:"heartbeat"`
	ID        string `json:"id"`
	Source    string `json:"source"`
	// RetryOf is the delivery id of the dead letter that is queued again.
	RetryOf string `json:"retry_of,omitempty"`
	Checked bool   `json:"checked,omitempty"`
	Prompt  string `json:"prompt"`
}

// kind is what a line turns out to be.
type kind int

const (
	blank kind = iota // nothing to hand over: skipped
	text              // an entry
	torn              // a fragment of a JSON line: a dead letter
)

// decoded is the content of a line.
type decoded struct {
	kind       kind
	id, source string
	prompt     string
	checked    bool
	retryOf    string // as envelope.RetryOf
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// decode reads a line without its newline; first is true for the line at offset 0.
// It unwraps a JSON string and opens an envelope; anything else is plain text with
// surrounding white space trimmed, as in heartbeat-rs. The prompt is valid UTF-8.
func decode(raw []byte, first bool) decoded {
	if first {
		raw = bytes.TrimPrefix(raw, byteOrderMark)
	}
	line := bytes.TrimSpace(raw)
	switch {
	case len(line) == 0:
		return decoded{}
	case line[0] == 0:
		return holed(line)
	case line[0] == '"':
		return decodeString(line)
	case line[0] == '{' && startsEnvelope(line):
		return decodeEnvelope(line)
	}
	return plain(line)
}

// holed handles a line that begins with NUL: what a power cut leaves, or the
// punched range before the cursor.
func holed(line []byte) decoded {
	if len(bytes.Trim(line, "\x00")) == 0 {
		return decoded{}
	}
	return decoded{kind: torn}
}

func plain(line []byte) decoded {
	return prompt(string(line), "", "")
}

// prompt makes an entry from a text, or a blank when the text is empty.
func prompt(s, id, source string) decoded {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.TrimFunc(s, unicode.IsSpace) == "" {
		return decoded{}
	}
	return decoded{kind: text, id: id, source: source, prompt: s}
}

// decodeString unwraps a JSON string. A line that begins with a quote but is not a
// JSON string is a fragment when a quote is left open; otherwise it is plain text
// that begins with a quotation.
func decodeString(line []byte) decoded {
	var s string
	if json.Unmarshal(line, &s) == nil {
		return prompt(s, "", "")
	}
	if openQuote(line) {
		return decoded{kind: torn}
	}
	return plain(line)
}

func openQuote(line []byte) bool {
	open, escaped := false, false
	for _, c := range line {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			open = !open
		}
	}
	return open || escaped
}

const envelopeStart = `{"heartbeat"`

// startsEnvelope reports whether line's first key is heartbeat, or the line ends
// too early to tell.
func startsEnvelope(line []byte) bool {
	rest := bytes.TrimLeftFunc(line[1:], unicode.IsSpace)
	want := envelopeStart[1:]
	n := min(len(rest), len(want))
	return string(rest[:n]) == want[:n]
}

// decodeEnvelope opens an envelope. Another program's object that happens to begin
// with our key is plain text; a fragment is torn.
func decodeEnvelope(line []byte) decoded {
	if !json.Valid(line) {
		return decoded{kind: torn}
	}
	var e struct {
		Heartbeat json.Number `json:"heartbeat"`
		ID        string      `json:"id"`
		Source    string      `json:"source"`
		Prompt    *string     `json:"prompt"`
		Checked   any         `json:"checked"`
		RetryOf   any         `json:"retry_of"`
	}
	if json.Unmarshal(line, &e) != nil || e.Heartbeat != "1" || e.Prompt == nil {
		return plain(line)
	}
	d := prompt(*e.Prompt, e.ID, e.Source)
	d.checked = e.Checked == true
	d.retryOf, _ = e.RetryOf.(string)
	return d
}

// encode returns an envelope as one line with its newline.
func encode(e envelope) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("cannot encode the entry: %v", err)
	}
	return b.Bytes(), nil
}

// maxID bounds ids and sources.
const maxID = 512

// check rejects a letter that could not be found or handed over later.
func (l Letter) check() error {
	if strings.TrimFunc(strings.ToValidUTF8(l.Prompt, "\uFFFD"), unicode.IsSpace) == "" {
		return errors.New("cannot queue a blank prompt: there is nothing to hand over")
	}
	for name, s := range map[string]string{"id": l.ID, "source": l.Source} {
		if len(s) > maxID || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("cannot queue an entry with the %s %.80q: it must be printable text of at most %d bytes",
				name, s, maxID)
		}
	}
	return nil
}

// entryID is heartbeat-rs's name for a line: the same for equal lines.
func entryID(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// deliveryID names one line of one file of the lane.
func (q *lane) deliveryID(generation, start int64, raw []byte) string {
	return deliveryID(q.urgent, generation, start, raw)
}

func deliveryID(urgent bool, generation, start int64, raw []byte) string {
	h := sha256.New()
	var n []byte
	if urgent {
		n = append(n, "urgent\x00"...)
	}
	n = strconv.AppendInt(n, generation, 10)
	n = append(n, 0)
	n = strconv.AppendInt(n, start, 10)
	n = append(n, 0)
	h.Write(n)
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:6])
}
