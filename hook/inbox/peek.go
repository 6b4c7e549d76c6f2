package inbox

import (
	"errors"
	"fmt"
	"io"
)

// Peek returns the entry in flight, or nil, as far as it can be read. It
// needs no lock and changes nothing.
func (q *Queue) Peek() (*InFlight, error) {
	v, err := q.look()
	if err != nil {
		return nil, err
	}
	defer v.close()
	return v.record(), nil
}

// Holds reports whether an entry with an envelope id is in flight or queued. It
// reads all that is queued, needs no lock and changes nothing.
func (q *Queue) Holds(id string) (bool, error) {
	v, err := q.look()
	if err != nil {
		return false, err
	}
	defer v.close()
	if v.flight != nil && v.flight.ID == id && !v.stale {
		return true, nil
	}
	found := false
	err = q.each(v, func(l line) bool {
		found = !l.tooLarge && decode(l.raw, l.start == 0).id == id
		return !found
	})
	return found, err
}

// Position is up to where a queue is done: all before it is acknowledged, or was
// given up.
type Position struct {
	File uint64 // the inbox's inode
	Done int64  // the cursor, in bytes
}

// maxPassed is how much of an inbox Passed counts at a time, and manyPassed how
// many entries count as passed where that cannot be told: in another inbox, in
// more than it counts, or where disk space was given back.
const (
	maxPassed  = 4 << 20
	manyPassed = 64
)

// Passed counts the entries that the queue has passed since a position, and
// returns where it is now. Going back passes none. It needs no lock and changes
// nothing.
func (q *Queue) Passed(since Position) (int, Position, error) {
	v, err := q.look()
	if err != nil {
		return 0, since, err
	}
	defer v.close()
	now := Position{v.source.ino, v.verdict.cursor}
	switch {
	case now.File == since.File && now.Done <= since.Done:
		return 0, since, nil
	case now.File != since.File, v.verdict.meta.Punched > since.Done, now.Done-since.Done > maxPassed:
		return manyPassed, now, nil
	}
	n := 0
	for l := q.lines(v.source.file, since.Done, min(now.Done, v.source.size), q.maxEntry, maxPassed); ; {
		got, err := l.read()
		switch {
		case errors.Is(err, io.EOF):
			return n, now, nil
		case err != nil:
			return n, since, fmt.Errorf("cannot read %q: %v", q.place.Inbox, err)
		case got.tooLarge || decode(got.raw, got.start == 0).kind != blank:
			n++
		}
	}
}
