package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// splice replaces the bytes from..to.
type splice struct {
	from, to int
	text     string
}

// apply makes all splices, which must not overlap. Several at one place keep their
// order.
func (d *document) apply(splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	var out bytes.Buffer
	at := 0
	for _, s := range splices {
		out.Write(d.src[at:s.from])
		out.WriteString(s.text)
		at = s.to
	}
	out.Write(d.src[at:])
	return out.Bytes()
}

// style is how a file is written.
type style struct {
	multi bool   // over several lines
	eol   string // "\n" or "\r\n"
	unit  string // one level of indentation
	colon string // with the space after it
	comma string // within a line
}

func (d *document) detectStyle() style {
	s := style{eol: "\n", unit: "  ", colon: ": ", comma: ", "}
	inner := d.src[d.root.start:d.root.end]
	s.multi = bytes.Contains(inner, []byte("\n")) || len(d.root.items) == 0
	if i := bytes.IndexByte(d.src, '\n'); i > 0 && d.src[i-1] == '\r' {
		s.eol = "\r\n"
	}
	if len(d.root.items) > 0 {
		s.colon = d.colon(d.root.items[0], s.colon)
		if s.colon == ":" {
			s.comma = ","
		}
	}
	if unit, ok := d.unit(d.root, 1); ok {
		s.unit = unit
	}
	return s
}

// unit looks for the first item that begins a line and divides its indentation by
// its depth.
func (d *document) unit(v *value, depth int) (string, bool) {
	for _, it := range v.items {
		if indent, ok := d.indentBefore(it.start); ok && len(indent) >= depth && len(indent)%depth == 0 {
			return indent[:len(indent)/depth], true
		}
		if unit, ok := d.unit(it.value, depth+1); ok {
			return unit, true
		}
	}
	return "", false
}

// indentBefore returns the white space between the beginning of the line and at, if
// there is nothing else. It looks back no further: a line may be long.
func (d *document) indentBefore(at int) (string, bool) {
	from := at
	for from > 0 && (d.src[from-1] == ' ' || d.src[from-1] == '\t') {
		from--
	}
	if from == 0 || d.src[from-1] != '\n' {
		return "", false
	}
	return string(d.src[from:at]), true
}

// lineIndent returns the indentation of the line that at is in.
func (d *document) lineIndent(at int) string {
	line := bytes.TrimPrefix(d.src[bytes.LastIndexByte(d.src[:at], '\n')+1:at], bom)
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// colon returns what is between a key and its value.
func (d *document) colon(it item, otherwise string) string {
	if it.keyEnd == it.start || it.value.start-it.keyEnd > 8 {
		return otherwise
	}
	between := string(d.src[it.keyEnd:it.value.start])
	if strings.ContainsAny(between, "\r\n") {
		return otherwise
	}
	return between
}

// member and object are JSON to be written, in this order.
type (
	member struct {
		key   string
		value any // string, int, bool, object or []any
	}
	object []member
)

// change cuts items of a container by their index and adds others (members for an
// object, values for an array) after the last one.
func (d *document) change(v *value, cut map[int]bool, add []any) []splice {
	last := -1 // the last item that stays
	var out []splice
	for i, it := range v.items {
		switch {
		case !cut[i]:
			last = i
		case last >= 0: // with the comma before it
			out = append(out, splice{from: v.items[i-1].value.end, to: it.value.end})
		case i+1 < len(v.items):
			out = append(out, splice{from: it.start, to: v.items[i+1].start})
		}
	}
	if last < 0 {
		if len(add) == 0 && len(v.items) == 0 {
			return nil
		}
		return []splice{{from: v.start + 1, to: v.end - 1, text: d.fill(v, add)}}
	}
	if len(add) > 0 {
		// Before the cut that may begin at the same place.
		out = append([]splice{{from: v.items[last].value.end, to: v.items[last].value.end, text: d.behind(v, add)}}, out...)
	}
	return out
}

// fill writes the inside of a container that has no other items.
func (d *document) fill(v *value, add []any) string {
	if len(add) == 0 {
		return ""
	}
	p := printer{style: d.style}
	base := d.lineIndent(v.start)
	p.list(add, base)
	return p.String()
}

// behind writes items after the last one, in the same style.
func (d *document) behind(v *value, add []any) string {
	n := len(v.items) - 1
	from := v.start + 1
	if n > 0 {
		from = v.items[n-1].value.end
		from += bytes.IndexByte(d.src[from:], ',') + 1
	}
	before := string(d.src[from:v.items[n].start])
	p := printer{style: d.style}
	p.colon = d.colon(v.items[n], p.colon)
	line := strings.LastIndexByte(before, '\n')
	p.multi = line >= 0
	separator := d.style.eol + before[line+1:]
	if !p.multi {
		separator = before
		if n == 0 {
			separator = strings.TrimPrefix(d.style.comma, ",")
		}
	}
	for _, a := range add {
		p.WriteString("," + separator)
		p.item(a, before[line+1:])
	}
	return p.String()
}

// text writes a value that replaces v.
func (d *document) text(v *value, with any) string {
	p := printer{style: d.style}
	p.multi = bytes.IndexByte(d.src[v.start:v.end], '\n') >= 0
	p.item(with, d.lineIndent(v.start))
	return p.String()
}

type printer struct {
	strings.Builder
	style
}

// item writes a member or a value; indent is the indentation of its line.
func (p *printer) item(a any, indent string) {
	switch a := a.(type) {
	case member:
		p.WriteString(quoted(a.key) + p.colon)
		p.item(a.value, indent)
	case object:
		p.WriteByte('{')
		all := make([]any, len(a))
		for i, m := range a {
			all[i] = m
		}
		p.list(all, indent)
		p.WriteByte('}')
	case []any:
		p.WriteByte('[')
		p.list(a, indent)
		p.WriteByte(']')
	case string:
		p.WriteString(quoted(a))
	case int:
		p.WriteString(strconv.Itoa(a))
	case bool:
		p.WriteString(strconv.FormatBool(a))
	}
}

// list writes items between brackets that are on a line with this indentation.
func (p *printer) list(items []any, indent string) {
	if len(items) == 0 {
		return
	}
	for i, a := range items {
		if i > 0 && p.multi {
			p.WriteByte(',')
		} else if i > 0 {
			p.WriteString(p.comma)
		}
		if p.multi {
			p.WriteString(p.eol + indent + p.unit)
		}
		p.item(a, indent+p.unit)
	}
	if p.multi {
		p.WriteString(p.eol + indent)
	}
}

func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
