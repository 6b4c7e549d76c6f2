// Package line holds the forms of a queue's lines: what one in inbox.jsonl holds, and how send
// and triggers write one. It is pure.
//
// A line that begins with the key "heartbeat" is an envelope; a JSON string is that string;
// a fragment of either is Fragment; anything else, other JSON included, is plain text as in
// heartbeat-rs. Fragments are what a power cut or a cut write leaves.
package line

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Envelope is the form in which send and triggers write an entry. The key heartbeat
// comes first, so that readers recognise it.
type Envelope struct {
	Heartbeat int    `json:"heartbeat"` // Encode sets it
	ID        string `json:"id"`
	Source    string `json:"source"`
	// RetryOf is the delivery id of the dead letter that is queued again.
	RetryOf string `json:"retry_of,omitempty"`
	Checked bool   `json:"checked,omitempty"`
	Prompt  string `json:"prompt"`
}

// Kind is what a line turns out to be.
type Kind int

// The kinds of lines.
const (
	Blank    Kind = iota // nothing to hand over: skipped
	Text                 // an entry
	Fragment             // a fragment of a JSON line: a dead letter
)

// Content is what a line holds. Of one that is not Text only the kind is set.
type Content struct {
	Kind       Kind
	ID, Source string // the envelope's, or ""
	Prompt     string // valid UTF-8, not blank
	Checked    bool   // the envelope's mark that the entry is done when a check has passed
	RetryOf    string // as Envelope.RetryOf
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Decode reads a line without its newline; first is true for the line at offset 0.
// It unwraps a JSON string and opens an envelope; anything else is plain text with
// surrounding white space trimmed, as in heartbeat-rs. The prompt is valid UTF-8.
func Decode(raw []byte, first bool) Content {
	if first {
		raw = bytes.TrimPrefix(raw, byteOrderMark)
	}
	line := bytes.TrimSpace(raw)
	switch {
	case len(line) == 0:
		return Content{}
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
func holed(line []byte) Content {
	if len(bytes.Trim(line, "\x00")) == 0 {
		return Content{}
	}
	return Content{Kind: Fragment}
}

func plain(line []byte) Content {
	return prompt(string(line), "", "")
}

// prompt makes an entry from a text, or a blank when the text is empty.
func prompt(s, id, source string) Content {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.TrimFunc(s, unicode.IsSpace) == "" {
		return Content{}
	}
	return Content{Kind: Text, ID: id, Source: source, Prompt: s}
}

// decodeString unwraps a JSON string. A line that begins with a quote but is not a
// JSON string is a fragment when a quote is left open; otherwise it is plain text
// that begins with a quotation.
func decodeString(line []byte) Content {
	var s string
	if json.Unmarshal(line, &s) == nil {
		return prompt(s, "", "")
	}
	if openQuote(line) {
		return Content{Kind: Fragment}
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

// EnvelopeStart is how an envelope begins that Encode has written.
const EnvelopeStart = `{"heartbeat"`

// startsEnvelope reports whether line's first key is heartbeat, or the line ends
// too early to tell.
func startsEnvelope(line []byte) bool {
	rest := bytes.TrimLeftFunc(line[1:], unicode.IsSpace)
	want := EnvelopeStart[1:]
	n := min(len(rest), len(want))
	return string(rest[:n]) == want[:n]
}

// decodeEnvelope opens an envelope. Another program's object that happens to begin
// with our key is plain text; a fragment is torn.
func decodeEnvelope(line []byte) Content {
	if !json.Valid(line) {
		return Content{Kind: Fragment}
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
	d.Checked = e.Checked == true
	d.RetryOf, _ = e.RetryOf.(string)
	return d
}

// Encode returns an envelope as one line with its newline.
func Encode(e Envelope) ([]byte, error) {
	e.Heartbeat = 1
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("cannot encode the entry: %v", err)
	}
	return b.Bytes(), nil
}

// Sum is heartbeat-rs's name for a line, the entry id: the SHA-256 of its bytes without the
// newline, in hex, the same for equal lines.
func Sum(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// ToJSON returns a line as JSON can hold it, and its bytes in base64 where that is not all of it.
func ToJSON(raw []byte) (text, exact string) {
	if utf8.Valid(raw) {
		return string(raw), ""
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD"), base64.StdEncoding.EncodeToString(raw)
}

// FromJSON returns the bytes of what ToJSON has returned. Where exact is no base64, text counts.
func FromJSON(text, exact string) []byte {
	if exact != "" {
		if raw, err := base64.StdEncoding.DecodeString(exact); err == nil {
			return raw
		}
	}
	return []byte(text)
}
