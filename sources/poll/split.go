package poll

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"heartbeat/hook/foreign"
	"heartbeat/sources"
)

// maxPrompts bounds the prompts of one run.
const maxPrompts = 1000

var errPrompts = fmt.Errorf("cannot take the command's output: it is over %d prompts", maxPrompts)

// part is the part of the output that becomes one prompt.
type part struct {
	text  string // valid UTF-8, not blank
	value any    // with SplitJSON: what the text says
}

// split splits a command's output into the parts that become prompts. A byte order mark,
// which programs of Windows print first, is none of it.
func split(out []byte, how sources.Split) ([]part, error) {
	out = bytes.TrimPrefix(out, []byte("\ufeff"))
	var parts []part
	switch how {
	case sources.SplitLines:
		for line := range bytes.Lines(out) {
			parts = append(parts, part{text: string(line)})
		}
	case sources.SplitJSON:
		var err error
		if parts, err = splitJSON(out); err != nil {
			return nil, err
		}
	case sources.SplitWhole, "":
		parts = []part{{text: string(out)}}
	default:
		return nil, fmt.Errorf("cannot split output by %q: it is not whole, lines or json", how)
	}
	kept := parts[:0]
	for _, p := range parts {
		if p.text = strings.TrimSpace(strings.ToValidUTF8(p.text, "\ufffd")); p.text != "" {
			kept = append(kept, p)
		}
	}
	if len(kept) > maxPrompts {
		return nil, errPrompts
	}
	return kept, nil
}

// splitJSON reads JSON values one after the other, or one array of them. A string
// becomes its text, any other value its JSON on one line, and null nothing.
func splitJSON(out []byte) ([]part, error) {
	if err := foreign.CheckJSON(out); err != nil {
		return nil, fmt.Errorf("cannot take the command's output: %w", err)
	}
	var values []json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var v json.RawMessage
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the command's output as JSON: %w", err)
		}
		if values = append(values, v); len(values) > maxPrompts {
			return nil, errPrompts
		}
	}
	if len(values) == 1 && values[0][0] == '[' {
		if err := json.Unmarshal(values[0], &values); err != nil {
			return nil, fmt.Errorf("cannot read the command's output as JSON: %w", err)
		}
	}
	var parts []part
	for _, v := range values {
		p, err := jsonPart(v)
		if err != nil {
			return nil, fmt.Errorf("cannot read the command's output as JSON: %w", err)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func jsonPart(v json.RawMessage) (p part, err error) {
	if p.value, err = sources.DecodeJSON(v); err != nil || p.value == nil {
		return p, err
	}
	if text, ok := p.value.(string); ok {
		p.text = text
		return p, nil
	}
	var b bytes.Buffer // as it is written: an order of keys, a number
	err = json.Compact(&b, v)
	p.text = b.String()
	return p, err
}
