package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// What a text of JSON may hold, where we keep all of its values: each takes up to 400 bytes
// of memory, however short it is written. What services send and clients write has a few
// thousand of them in a megabyte.
const (
	MostValues = 50_000
	MostDepth  = 200
)

// ErrMany means that JSON holds more than we keep of what others wrote.
var ErrMany = errors.New("it has too many values")

// CheckJSON returns an error that matches ErrMany if JSON that others wrote has more than
// MostValues values, or they are nested deeper than MostDepth. It does not say whether it is
// JSON, and keeps nothing.
func CheckJSON(data []byte) error {
	values, depth := 1, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			values++ // and one more for each comma in it
			if depth++; depth > MostDepth {
				return fmt.Errorf("%w: they are nested more than %d deep", ErrMany, MostDepth)
			}
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if values > MostValues {
			return fmt.Errorf("%w: more than %d", ErrMany, MostValues)
		}
	}
	return nil
}

// Unmarshal is json.Unmarshal of what others wrote: the error matches ErrMany if it holds too
// much to be kept.
func Unmarshal(data []byte, v any) error {
	if err := CheckJSON(data); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// List reads a list of JSON that others wrote, of at most MostValues elements, whatever an
// element holds. The error matches ErrMany if there are more.
func List[T any](data []byte) ([]T, error) {
	in := json.NewDecoder(bytes.NewReader(data))
	begin, err := in.Token()
	if err != nil {
		return nil, err
	}
	if begin != json.Delim('[') {
		return nil, errors.New("it is not a list")
	}
	var all []T
	for in.More() {
		if len(all) >= MostValues {
			return nil, fmt.Errorf("%w: a list of more than %d", ErrMany, MostValues)
		}
		var one T
		if err := in.Decode(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	_, err = in.Token()
	return all, err
}
