package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// deliver hands a text to the client in one write and returns the exit
// status that belongs to it. With an error the client got nothing that it
// honours: it takes stderr for a prompt after status 2 only, and no part of a
// JSON document (measured in 2.1.329).
func deliver(c Call, how Deliver, text string) (int, error) {
	crashPoint("delivering")
	if how == DeliverStderr {
		if _, err := writeOnce(c.Stderr, []byte(text)); err != nil {
			return 0, err
		}
		crashPoint("delivered")
		return 2, nil
	}
	block, err := encode(struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}{"block", text})
	if err != nil {
		return 0, err
	}
	n, err := writeOnce(c.Stdout, block)
	crashPoint("delivered")
	switch {
	case n >= len(block)-1: // it lacks its newline at most
		return 0, nil
	case errors.Is(err, syscall.EPIPE):
		return 0, err
	}
	return 1, err
}

// encode is JSON on one line, without the escapes of HTML: "<" stays "<".
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func writeOnce(w io.Writer, data []byte) (n int, err error) {
	n, err = w.Write(data)
	if err == nil && n < len(data) {
		err = fmt.Errorf("%d of %d bytes were written: %w", n, len(data), io.ErrShortWrite)
	}
	return n, err
}
