package sources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"heartbeat/hook/foreign"
)

// What JSON says becomes, for templates, keys and conditions alike: text is a string,
// true and false are bools, an integer is an int64 or, if that is too small, a
// json.Number as it is written, as is any other number but 0; lists and objects are
// List and Object, which print as compact JSON. null is nil inside of them, and ""
// wherever it is looked at.

// List is a list of JSON.
type List []any

// String returns the list as compact JSON.
func (l List) String() string { return compact(l) }

// Object is an object of JSON.
type Object map[string]any

// String returns the object as compact JSON.
func (o Object) String() string { return compact(o) }

func compact(value any) string {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(value); err != nil {
		return "" // decoded JSON can be encoded
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ErrTrailing means that something follows a JSON value.
var ErrTrailing = errors.New("something follows its value")

// DecodeJSON reads one value of JSON that others wrote. The error matches foreign.ErrMany if
// it holds more than we keep.
func DecodeJSON(data []byte) (any, error) {
	if err := foreign.CheckJSON(data); err != nil {
		return nil, err
	}
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	var value any
	if err := in.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrTrailing
	}
	return typed(value), nil
}

// typed gives a decoded value our types, in place.
func typed(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		// 1e6 is written out, and 0.0 is as false as 0.
		if n, ok := integerOf(v); ok && (n.Sign() == 0 || strings.ContainsAny(v.String(), "eE")) && n.IsInt64() {
			return n.Int64()
		}
	case map[string]any:
		for k, element := range v {
			v[k] = typed(element)
		}
		return Object(v)
	case []any:
		for i, element := range v {
			v[i] = typed(element)
		}
		return List(v)
	}
	return value
}

// ScalarText returns a value as text, if it is no list and no object.
func ScalarText(value any) (text string, is bool) {
	switch value.(type) {
	case List, Object:
		return "", false
	}
	return textOf(value), true
}

// textOf returns any value as text, null as "".
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return fmt.Sprint(value)
}

// seen returns a value as templates see it.
func seen(value any) any {
	if value == nil {
		return ""
	}
	return value
}

// below returns what a value has under a name or an index, and whether it is there.
// Below null is null; other values have nothing below them.
func below(value, key any) (any, bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case Object:
		element, ok := v[textOf(key)]
		return element, ok
	case List:
		n, ok := integerOf(key)
		if !ok || !n.IsInt64() || n.Int64() < 0 || n.Int64() >= int64(len(v)) {
			return nil, false
		}
		return v[n.Int64()], true
	}
	return nil, false
}
