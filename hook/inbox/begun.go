package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
)

// What a person has done to queued entries or to dead letters takes several steps. It is
// noted before the first one, so that whoever takes the hook lock next finishes what a
// killed process has begun. Otherwise an entry would be queued and a dead letter: it would
// be handed over although it was given up, and a second time when its letter is queued
// again.

// begun is what was begun.
type begun struct {
	Drop  []string `json:"drop,omitempty"`  // delivery ids of entries, to become dead letters
	Retry []string `json:"retry,omitempty"` // delivery ids of dead letters, to be queued again
}

// maxBegun bounds what is read of it: a delivery id takes 15 bytes.
const maxBegun = 64 << 20

// begunFile is the name of the file that has it.
func (q *Queue) begunFile() string { return "." + q.name + ".begun" }

// begin notes what follows, durably. While the rest of something else waits, nothing is begun:
// there is one note.
func (h *Held) begin(b begun) error {
	if h.unfinished != nil {
		return h.unfinished
	}
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return h.dir.Replace(h.begunFile(), append(data, '\n'))
}

// over forgets it. If it comes back after a power cut, there is nothing left to do.
func (h *Held) over() error { return h.dir.Remove(h.begunFile()) }

// finish does the rest of what was begun. While the queue asks a person, nothing is handed
// over, and the rest waits for the answer.
func (h *Held) finish() error {
	b, corrupt, err := readOwn(h.dir, h.begunFile(), maxBegun, func(data []byte) *begun {
		var b begun
		if json.Unmarshal(data, &b) != nil {
			return nil
		}
		return &b
	})
	switch {
	case corrupt:
		return h.quarantine(h.begunFile())
	case b == nil || err != nil:
		return err
	}
	if _, err = h.drop(b.Drop); err == nil {
		err = h.requeueRest(b.Retry)
	}
	switch {
	case errors.Is(err, ErrNeedsOperator):
		h.unfinished = err
		return nil
	case err != nil:
		return fmt.Errorf("cannot finish what was begun with the queue: %w", err)
	}
	h.note("whoever dropped queued entries, or queued dead letters again, was interrupted: finished")
	return h.over()
}
