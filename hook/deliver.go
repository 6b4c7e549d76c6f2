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
// status that belongs to it. With an error nothing was handed over, as far as
// we know.
func deliver(c Call, how Deliver, text string) (int, error) {
	crashPoint("delivering")
	if how == DeliverStderr {
		if err := writeOnce(c.Stderr, []byte(text)); err != nil {
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
	err = writeOnce(c.Stdout, block)
	crashPoint("delivered")
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return 1, err
	}
	return 0, err
}

// encode is JSON on one line, without the escapes of HTML: "<" stays "<".
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func writeOnce(w io.Writer, data []byte) error {
	n, err := w.Write(data)
	if err == nil && n < len(data) {
		err = fmt.Errorf("%d of %d bytes were written: %w", n, len(data), io.ErrShortWrite)
	}
	return err
}
