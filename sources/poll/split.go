package poll

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"heartbeat/sources"
)

// maxPrompts bounds the prompts of one run.
const maxPrompts = 1000

// split makes of a command's output the parts that become prompts: valid
// UTF-8, none of them blank.
func split(out []byte, how sources.Split) ([]string, error) {
	var parts []string
	switch how {
	case sources.SplitLines:
		for line := range bytes.Lines(out) {
			parts = append(parts, string(line))
		}
	case sources.SplitJSON:
		var err error
		if parts, err = splitJSON(out); err != nil {
			return nil, err
		}
	case sources.SplitWhole, "":
		parts = []string{string(out)}
	default:
		return nil, fmt.Errorf("cannot split output by %q: it is not whole, lines or json", how)
	}
	kept := parts[:0]
	for _, p := range parts {
		if p = strings.TrimSpace(strings.ToValidUTF8(p, "\ufffd")); p != "" {
			kept = append(kept, p)
		}
	}
	if len(kept) > maxPrompts {
		return nil, fmt.Errorf("cannot take the command's output: it is over %d prompts", maxPrompts)
	}
	return kept, nil
}

// splitJSON reads JSON values one after the other, or one array of them. A
// string becomes its text, another value its JSON on one line, null nothing.
func splitJSON(out []byte) ([]string, error) {
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
		values = append(values, v)
	}
	if len(values) == 1 && values[0][0] == '[' {
		if err := json.Unmarshal(values[0], &values); err != nil {
			return nil, fmt.Errorf("cannot read the command's output as JSON: %w", err)
		}
	}
	var parts []string
	for _, v := range values {
		part, err := jsonText(v)
		if err != nil {
			return nil, fmt.Errorf("cannot read the command's output as JSON: %w", err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func jsonText(v json.RawMessage) (string, error) {
	switch {
	case string(v) == "null":
		return "", nil
	case v[0] == '"':
		var s string
		err := json.Unmarshal(v, &s)
		return s, err
	default:
		var b bytes.Buffer
		err := json.Compact(&b, v)
		return b.String(), err
	}
}
