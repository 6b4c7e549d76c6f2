package handwired

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"heartbeat/hook/client"
)

// errLate means that a payload was not complete in time.
var errLate = errors.New("it did not come in time")

// readPayload reads the client's JSON and waits at most patience until it is
// complete. For a terminal or an empty stdin it returns client.ErrNoPayload.
func readPayload(stdin io.Reader, patience time.Duration) (*client.Event, error) {
	if f, ok := stdin.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return nil, client.ErrNoPayload
		}
	}
	if stdin == nil {
		return nil, client.ErrNoPayload
	}
	type result struct {
		e   *client.Event
		err error
	}
	done := make(chan result, 1)
	go func() {
		e, err := client.Claude.Hooks.Read(stdin)
		done <- result{e, err}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.e, r.err
	case <-timer.C:
		return nil, fmt.Errorf("%w within %s: %w", client.ErrNoPayload, patience, errLate)
	}
}
