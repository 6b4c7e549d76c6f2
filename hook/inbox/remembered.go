package inbox

import (
	"bytes"
	"fmt"
	"os"
	"time"

	form "heartbeat/queue/line"
)

// remembered returns what the memory of ids holds about a file since it was last disturbed, from
// an offset on; 0 means any file.
func (q *lane) remembered(ino uint64, from int64) (known []knownID, err error) {
	err = q.eachID(func(k splitLine) {
		switch {
		case k.disturbed:
			known = known[:0]
		case (ino == 0 || k.ino == ino) && k.start >= from && len(k.id) > 0:
			known = append(known, knownID{ID: string(k.id), Start: new(k.start)})
		}
	})
	return known, err
}

// How much of the end of the memory of ids is read to see whether the inbox was
// overwritten: more, where the end says nothing about the lane.
const (
	idsEnd  = 4 << 10
	idsTail = 64 << 10
)

// recentIDs are the lines with an id at the end of the memory of ids that are about this
// lane, since it was disturbed, oldest first.
func (q *lane) recentIDs() []splitLine {
	file, err := q.dir.OpenFile(idsFile, os.O_RDONLY)
	if err != nil {
		return nil // without it nothing is known
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	for _, n := range []int64{idsEnd, idsTail} {
		n = min(n, info.Size())
		data := make([]byte, n)
		if _, err := file.ReadAt(data, info.Size()-n); err != nil {
			return nil
		}
		if n < info.Size() { // the first line may be cut
			_, data, _ = bytes.Cut(data, []byte{'\n'})
		}
		if recent := q.idsIn(data); len(recent) > 0 || n == info.Size() {
			return recent
		}
	}
	return nil
}

// idsIn is recentIDs for a part of the memory.
func (q *lane) idsIn(data []byte) (recent []splitLine) {
	for l := range bytes.Lines(data) {
		switch k := splitID(l); {
		case k.urgent != q.urgent:
		case k.disturbed:
			recent = recent[:0]
		case len(k.id) > 0 && k.start >= 0:
			recent = append(recent, k)
		}
	}
	return recent
}

// eachID calls do for each line of the memory of ids about this lane; what it gets is
// valid until do returns.
func (q *lane) eachID(do func(splitLine)) error {
	file, err := q.dir.OpenFile(idsFile, os.O_RDONLY)
	if err != nil {
		return nil // without it nothing is known
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("cannot read the memory of ids: %v", err)
	}
	l := q.lines(file, 0, info.Size(), 4<<10, mostRecords)
	l.bare = true
	for {
		got, err := l.read()
		if err != nil {
			return ignoreEOF(err)
		}
		if k := splitID(append(got.raw, '\n')); k.urgent == q.urgent {
			do(k)
		}
	}
}

// everPassed reports whether, according to the memory of ids, something in this file was done.
func (q *lane) everPassed(s *source) (passed bool, err error) {
	err = q.eachID(func(k splitLine) {
		switch {
		case k.disturbed:
			passed = false
		case len(k.id) == 0 && k.ino == s.ino && k.start > 0 && k.start <= s.size:
			passed = true
		}
	})
	return passed, err
}

// rewritten reports whether, in a queue without a sidecar, an entry before the cursor is not where
// the memory of ids has it. Then the cursor belongs to another file, or to this one before it
// was cut.
func (q *lane) rewritten(s *source, c cursorState, f *flight) (rewritten bool, err error) {
	if s.file == nil || c.missing || c.corrupt || c.value > s.size || f != nil && f.here {
		return false, nil
	}
	err = q.eachID(func(k splitLine) {
		switch {
		case k.disturbed:
			rewritten = false
		case len(k.id) > 0 && k.ino == s.ino && k.start >= 0 && k.start < c.value:
			rewritten = rewritten || !s.holds(k, true)
		}
	})
	return rewritten, err
}

// holds reports whether an entry stands where it was written, or what may have taken its
// place: blanks, because it was dropped; with hollow, a hole, because its blocks were given
// back, which need not reach to its end.
func (s *source) holds(k splitLine, hollow bool) bool {
	want := append([]byte(form.EnvelopeStart+`:1,"id":"`), k.raw...)
	got, err := s.bytes(k.start, k.start+int64(len(want)))
	return err == nil && (bytes.Equal(got, want) || len(bytes.Trim(got, " ")) == 0 || hollow && got[0] == 0)
}

// begins records, once for each file, that something in it is done. If cursor and sidecar are both
// lost later, nothing in it may be repeated without asking a person.
func (q *lane) begins(s *source, done int64) {
	_ = q.writeIDs([]knownID{{Start: &done, At: time.Now().Unix(), Ino: s.ino}})
}

// remark starts a new section in the memory of ids for the file that is the inbox now: what was
// remembered before is not about it. After a failure less is known if the inbox is disturbed
// again.
func (q *lane) remark(s *source, there []knownID) {
	ids := make([]knownID, 0, len(there)+1)
	now := time.Now().Unix()
	ids = append(ids, knownID{At: now, Ino: s.ino})
	for _, k := range there {
		k.At = now
		ids = append(ids, k)
	}
	_ = q.writeIDs(ids)
}
