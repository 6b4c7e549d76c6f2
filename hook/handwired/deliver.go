package handwired

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"heartbeat/hook/client"
	"heartbeat/hook/crashpoint"
)

// deliver hands a text to the client in one write and returns the exit status that
// belongs to it. After an error the client got nothing that it acts on: it takes
// stderr for a prompt after status 2 only, and no part of a JSON document (measured
// in 2.1.329).
func deliver(c Call, how way, text string) (int, error) {
	crashpoint.At("delivering")
	if how == asStderr {
		if _, err := writeOnce(c.Stderr, []byte(text)); err != nil {
			return 0, err
		}
		crashpoint.At("delivered")
		return client.StatusPrompt, nil
	}
	block, err := client.Claude.Hooks.Block(text)
	if err != nil {
		return 0, err
	}
	n, err := writeOnce(c.Stdout, block)
	crashpoint.At("delivered")
	switch {
	case n >= len(block)-1: // it lacks its newline at most
		return 0, nil
	case errors.Is(err, syscall.EPIPE):
		return 0, err
	}
	return 1, err
}

func writeOnce(w io.Writer, data []byte) (n int, err error) {
	n, err = w.Write(data)
	if err == nil && n < len(data) {
		err = fmt.Errorf("%d of %d bytes were written: %w", n, len(data), io.ErrShortWrite)
	}
	return n, err
}
