package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
)

// ID is a line of .ids, in which heartbeat's send has kept what it appended. One without an id is
// a mark: with a Start, that the file was done up to there; otherwise, that somebody has
// disturbed the file, and that those before it are about what stood there earlier.
type ID struct {
	ID     string `json:"id"`
	Start  *int64 `json:"start"` // where the entry stands; nil: not known
	At     int64  `json:"at"`    // Unix seconds
	Ino    uint64 `json:"ino"`   // of the file of lines
	Urgent bool   `json:"urgent"`
}

// Accepted is when it was appended.
func (k ID) Accepted() time.Time { return time.Unix(k.At, 0) }

// IDs calls do for what the memory of ids holds, oldest first, of both lanes, until do returns
// false. One that is no file holds nothing.
func (r *Reader) IDs(do func(ID) bool) error {
	file, err := r.dir.OpenFile(IDsFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrNotRegular) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return eachRecord(file, 0, 4<<10, func(l line) bool {
		var k ID
		return json.Unmarshal(l.raw, &k) != nil || do(k)
	})
}

// hasPassed reports whether, according to the memory of ids, something in this file was done.
func (r *Reader) hasPassed(s *source) (passed bool, err error) {
	err = r.IDs(func(k ID) bool {
		switch {
		case k.Urgent != r.lane.Urgent || k.ID != "":
		case k.Start == nil:
			passed = false
		case k.Ino == s.ino && *k.Start > 0 && *k.Start <= s.size:
			passed = true
		}
		return true
	})
	return passed, err
}

// isRewritten reports whether, in a queue without a sidecar, an entry before the cursor is not
// where the memory of ids has it. Then the cursor belongs to another file, or to this one before
// it was cut.
func (r *Reader) isRewritten(s *source, c cursor, f *flight) (rewritten bool, err error) {
	if s.file == nil || c.missing || c.damaged || c.value > s.size || f.isHere() {
		return false, nil
	}
	err = r.IDs(func(k ID) bool {
		switch {
		case k.Urgent != r.lane.Urgent:
		case k.ID == "" && k.Start == nil:
			rewritten = false
		case k.ID != "" && k.Start != nil && k.Ino == s.ino && *k.Start < c.value:
			rewritten = rewritten || !s.holds(k)
		}
		return true
	})
	return rewritten, err
}

// holds reports whether an entry stands where it was written, or what may have taken its place:
// blanks, because it was dropped, or a hole, because its blocks were given back.
func (s *source) holds(k ID) bool {
	id, err := encode(k.ID)
	if err != nil {
		return true
	}
	want := append([]byte(form.EnvelopeStart+`:1,"id":`), bytes.TrimSpace(id)...)
	got, err := s.bytes(*k.Start, *k.Start+int64(len(want)))
	return err == nil && (bytes.Equal(got, want) || len(bytes.Trim(got, " ")) == 0 || got[0] == 0)
}
