package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonReader takes a JSON text apart as it arrives and holds only what it is asked
// for, so that a tool's input of any size costs no memory. It is lenient with what
// it skips. An input that ends too early gives io.ErrUnexpectedEOF.
type jsonReader struct{ in *bufio.Reader }

func newJSONReader(r io.Reader) jsonReader { return jsonReader{bufio.NewReaderSize(r, 64<<10)} }

// maxKey limits a key that is read; a longer one is none of ours.
const maxKey = 256

// object reads an object and calls field for each key, which must read the value.
// It returns false for any other value, and skips it.
func (r jsonReader) object(field func(key string) error) (bool, error) {
	if is, err := r.opens('{'); !is || err != nil {
		return false, err
	}
	for first := true; ; first = false {
		if closes, err := r.closes('}', first); closes || err != nil {
			return true, err
		}
		key, ok, err := r.text(maxKey)
		if err == nil && !ok {
			err = errors.New("a key is not a string")
		}
		if err == nil {
			err = r.expect(':')
		}
		if err == nil {
			err = field(key)
		}
		if err != nil {
			return true, err
		}
	}
}

// array is object for an array.
func (r jsonReader) array(element func() error) (bool, error) {
	if is, err := r.opens('['); !is || err != nil {
		return false, err
	}
	for first := true; ; first = false {
		if closes, err := r.closes(']', first); closes || err != nil {
			return true, err
		}
		if err := element(); err != nil {
			return true, err
		}
	}
}

// opens reads the bracket, or skips a value that does not begin with it.
func (r jsonReader) opens(bracket byte) (bool, error) {
	c, err := r.token()
	if err != nil || c == bracket {
		return err == nil, err
	}
	return false, errors.Join(r.in.UnreadByte(), r.skip())
}

// closes reads the closing bracket, or the comma before the next element.
func (r jsonReader) closes(bracket byte, first bool) (bool, error) {
	c, err := r.token()
	switch {
	case err != nil:
		return false, err
	case c == bracket:
		return true, nil
	case first:
		return false, r.in.UnreadByte()
	case c != ',':
		return false, fmt.Errorf("%q stands where a comma or %q should", c, bracket)
	}
	return false, nil
}

func (r jsonReader) expect(want byte) error {
	c, err := r.token()
	if err == nil && c != want {
		err = fmt.Errorf("%q stands where %q should", c, want)
	}
	return err
}

// token returns the next byte that is not white space.
func (r jsonReader) token() (byte, error) {
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return 0, cutOff(err)
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
	}
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// text reads a string, at most limit bytes of its JSON: it skips the rest. It
// returns false for any other value, and skips it.
func (r jsonReader) text(limit int) (string, bool, error) {
	if is, err := r.opens('"'); !is || err != nil {
		return "", false, err
	}
	raw, whole := []byte{'"'}, true
	err := r.string(func(part []byte) {
		fits := min(len(part), limit+1-len(raw))
		raw, whole = append(raw, part[:fits]...), whole && fits == len(part)
	})
	if err != nil {
		return "", false, err
	}
	var s string
	for range len(`\ud83d\ude00`) { // a cut may have gone through an escape, and this is the longest
		if json.Unmarshal(append(bytes.Clone(raw), '"'), &s) == nil {
			return s, true, nil
		}
		if whole || len(raw) == 1 {
			break
		}
		raw = raw[:len(raw)-1]
	}
	return "", false, nil
}

// string skips a string whose quote has been read, in parts.
func (r jsonReader) string(take func(part []byte)) error {
	for escaped := false; ; {
		if _, err := r.in.Peek(1); err != nil {
			return cutOff(err)
		}
		part, _ := r.in.Peek(r.in.Buffered())
		n := 0
		for ; n < len(part); n++ {
			if !escaped { // to the next byte that matters
				at := bytes.IndexAny(part[n:], "\\\"")
				if at < 0 {
					n = len(part)
					break
				}
				n += at
			}
			if !escaped && part[n] == '"' {
				take(part[:n])
				_, err := r.in.Discard(n + 1)
				return err
			}
			escaped = !escaped
		}
		take(part[:n])
		if _, err := r.in.Discard(n); err != nil {
			return err
		}
	}
}

// truth reads a boolean; any other value is skipped and false.
func (r jsonReader) truth() (bool, error) {
	c, err := r.token()
	if err == nil {
		err = errors.Join(r.in.UnreadByte(), r.skip())
	}
	return c == 't', err
}

// skip skips a value.
func (r jsonReader) skip() error {
	for depth := 0; ; {
		c, err := r.token()
		if err != nil {
			return err
		}
		switch c {
		case '"':
			err = r.string(func([]byte) {})
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',', ':':
			if depth == 0 {
				return fmt.Errorf("%q stands where a value should", c)
			}
		default:
			err = r.word()
		}
		if err != nil || depth <= 0 {
			return err
		}
	}
}

// word skips the rest of a number or of true, false, null.
func (r jsonReader) word() error {
	for {
		c, err := r.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil // the caller will notice
		}
		if err != nil {
			return err
		}
		if bytes.IndexByte([]byte(",:{}[]\" \n\t\r"), c) >= 0 {
			return r.in.UnreadByte()
		}
	}
}
