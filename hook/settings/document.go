package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"heartbeat/hook/foreign"
)

// Error says where a settings file cannot be understood.
type Error struct {
	Line, Column int // from 1; columns are bytes
	// Place is the path of the value, e.g. "hooks.Stop[0]", or "" if the file is
	// not JSON.
	Place string
	// Reason says what was found.
	Reason string
}

// Error returns LINE:COLUMN: PLACE: REASON.
func (e *Error) Error() string {
	if e.Place == "" {
		return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason)
	}
	return fmt.Sprintf("%d:%d: %s: %s", e.Line, e.Column, e.Place, e.Reason)
}

// bom is UTF-8's byte order mark, which the client skips.
var bom = []byte("\xef\xbb\xbf")

// document is a settings file with the byte ranges of its values.
type document struct {
	src     []byte // with the byte order mark
	root    *value
	missing bool // there was no file: src is a stand-in
	style   style
}

// value is one JSON value. Its kind is the first byte of its text; '0' stands for
// all digits and '-'.
type value struct {
	kind       byte // { [ " 0 t f n
	start, end int
	items      []item // of { and [
	text       string // of "
}

// item is a member of an object or an element of an array.
type item struct {
	start, keyEnd int // of the key, or start of the element twice
	key           string
	value         *value
}

// find returns the value of a key, or nil. Of duplicates it returns the last one,
// like the client.
func (v *value) find(key string) *value {
	for _, it := range slices.Backward(v.items) {
		if it.key == key {
			return it.value
		}
	}
	return nil
}

// read parses a settings file whose root is an object. A missing or empty file
// counts as an empty object. One that holds more than anybody writes there is refused: an
// agent can write it.
func read(src []byte) (*document, error) {
	if err := foreign.CheckJSON(src); err != nil {
		return nil, &Error{Line: 1, Column: 1, Reason: err.Error()}
	}
	return readWhole(src)
}

// readWhole is read of a file of any size, such as the client's own.
func readWhole(src []byte) (*document, error) {
	d := &document{src: src}
	body := bytes.TrimPrefix(src, bom)
	skip := len(src) - len(body)
	if len(bytes.TrimSpace(body)) == 0 {
		d.src = append(slices.Clone(src[:skip]), "{}\n"...)
		d.missing = true
	} else if err := valid(body); err != nil {
		return nil, d.syntaxError(err, skip)
	}
	s := scanner{src: d.src, pos: skip}
	d.root = s.value()
	if d.root.kind != '{' {
		return nil, d.wrong(d.root, "the file", "an object")
	}
	d.style = d.detectStyle()
	return d, nil
}

func valid(body []byte) error {
	if json.Valid(body) {
		return nil
	}
	var any json.RawMessage
	return json.Unmarshal(body, &any)
}

func (d *document) syntaxError(err error, skip int) error {
	at := len(d.src)
	if syntax, ok := err.(*json.SyntaxError); ok {
		at = min(skip+max(int(syntax.Offset)-1, 0), len(d.src))
	}
	e := d.errorAt(at, "", strings.TrimPrefix(err.Error(), "json: "))
	const strict = "; Claude Code takes strict JSON only"
	before := bytes.TrimRight(d.src[:at], " \t\r\n")
	switch {
	case at < len(d.src) && d.src[at] == '/':
		e.Reason = "a comment" + strict
	case at < len(d.src) && (d.src[at] == '}' || d.src[at] == ']') && bytes.HasSuffix(before, []byte(",")):
		e.Reason = "a comma after the last item" + strict
	}
	return e
}

func (d *document) errorAt(at int, place, reason string) *Error {
	before := d.src[:at]
	line := bytes.Count(before, []byte("\n"))
	return &Error{Line: line + 1, Column: at - bytes.LastIndexByte(before, '\n'), Place: place, Reason: reason}
}

// wrong says that v is not what should be at its place.
func (d *document) wrong(v *value, place, belongs string) error {
	names := map[byte]string{'{': "an object", '[': "an array", '"': "a string", '0': "a number", 't': "true", 'f': "false", 'n': "null"}
	return d.errorAt(v.start, place, "must be "+belongs+", not "+names[v.kind])
}

// want returns v if it is of the kind, nil for nil, otherwise an error.
func (d *document) want(v *value, kind byte, place string) (*value, error) {
	if v == nil || v.kind == kind {
		return v, nil
	}
	belongs := map[byte]string{'{': "an object", '[': "an array", '"': "a string"}
	return nil, d.wrong(v, place, belongs[kind])
}

// scanner walks JSON that is known to be valid.
type scanner struct {
	src []byte
	pos int
}

func (s *scanner) skip() {
	for s.pos < len(s.src) && strings.IndexByte(" \t\r\n", s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) value() *value {
	s.skip()
	v := &value{start: s.pos, kind: s.src[s.pos]}
	switch v.kind {
	case '{', '[':
		s.items(v)
	case '"':
		v.text = s.str()
	default:
		for s.pos < len(s.src) && strings.IndexByte(" \t\r\n,]}", s.src[s.pos]) < 0 {
			s.pos++
		}
		if v.kind == '-' || v.kind >= '0' && v.kind <= '9' {
			v.kind = '0'
		}
	}
	v.end = s.pos
	return v
}

func (s *scanner) items(v *value) {
	for {
		s.pos++ // the bracket or a comma
		s.skip()
		if s.src[s.pos] == '}' || s.src[s.pos] == ']' {
			break
		}
		it := item{start: s.pos, keyEnd: s.pos}
		if v.kind == '{' {
			it.key = s.str()
			it.keyEnd = s.pos
			s.skip()
			s.pos++ // the colon
		}
		it.value = s.value()
		v.items = append(v.items, it)
		s.skip()
		if s.src[s.pos] != ',' {
			break
		}
	}
	s.pos++
}

func (s *scanner) str() string {
	start := s.pos
	for s.pos++; s.src[s.pos] != '"'; s.pos++ {
		if s.src[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
	raw := s.src[start:s.pos]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // valid
	return text
}
