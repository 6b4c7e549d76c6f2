package files

import (
	"errors"
	"fmt"
	"io"
)

// position says where the queue goes on, and what must be repaired first.
type position struct {
	cursor  int64
	sidecar sidecar
	moved   bool // the cursor file must be rewritten
	changed bool // the sidecar must be
	aside   bool // the cursor file is damaged, and is kept as evidence
	midline bool // heartbeat-rs took an unterminated line, and the rest of it was written later
	edited  bool // the same lines stand at other offsets now
	fresh   bool // the file of lines was not seen before
	note    string
}

// judge decides where the queue goes on. It never lands in the middle of a line and never skips
// an entry; when it cannot tell, it returns ErrNeedsOperator. What heartbeat's earlier design was
// seen to ask is asked until a person has answered, or what was done stands in the file again.
func (r *Reader) judge(s *source, c cursor, m *sidecar, f *flight) (position, error) {
	p, err := r.judgeFacts(s, c, m, f)
	if err != nil || m == nil || m.Asks == "" {
		return p, err
	}
	if p.fresh || p.edited || m.isUnknown() {
		return p, fmt.Errorf("%w: %s", ErrNeedsOperator, m.Asks)
	}
	p.sidecar.Asks, p.changed = "", true
	return p, nil
}

func (r *Reader) judgeFacts(s *source, c cursor, m *sidecar, f *flight) (position, error) {
	switch {
	case m == nil:
		return r.judgeUnknown(s, c, f)
	case s.file == nil && m.Cursor == 0 && !c.damaged && c.value == 0 && m.Ino == 0:
		return position{sidecar: *m}, nil
	case s.file == nil && (m.Ino == 0 || m.Cursor == 0 && c.value == 0):
		return startAfresh(s, c, m, ""), nil
	case s.file == nil:
		return startAfresh(s, c, m, "the inbox is gone; starting at the first byte of the next one"), nil
	case m.Ino == 0 || m.Cursor == 0 && m.Ino != s.ino:
		// Nothing in this file was acknowledged, so there is nothing to confuse.
		p := position{sidecar: s.note(*m, 0, nil), changed: true, moved: c.damaged || c.value != 0, aside: c.damaged}
		if m.Ino != 0 && !f.isHere() {
			p.sidecar.Generation = newGeneration()
			p.sidecar.Requeued = m.Requeued.movedTo(0)
		}
		return p, nil
	case s.size < m.Cursor:
		return r.judgeShorter(s, c, m)
	case s.sum(max(0, m.Cursor-window), m.Cursor) == m.Tail:
		return r.judgeSame(s, c, m, f)
	}
	return r.judgeChanged(s, c, m)
}

// startAfresh starts at the first byte of a file that was not seen before.
func startAfresh(s *source, c cursor, m *sidecar, note string) position {
	next := sidecar{Generation: newGeneration(), Requeued: m.Requeued, Archive: m.Archive}
	return position{
		sidecar: s.note(next, 0, nil), changed: true, fresh: true,
		moved: c.damaged || c.value != 0, aside: c.damaged, note: note,
	}
}

// judgeUnknown handles a folder without our sidecar: heartbeat-rs's, or one that lost it. Only
// the cursor itself can be checked.
func (r *Reader) judgeUnknown(s *source, c cursor, f *flight) (position, error) {
	next := sidecar{Generation: newGeneration()}
	if f.isHere() && f.Generation > 0 {
		next.Generation = f.Generation
	}
	p := position{changed: s.file != nil, cursor: c.value}
	forgotten, err := r.hasForgotten(s, c, f)
	if err != nil {
		return p, err
	}
	rewritten, err := r.isRewritten(s, c, f)
	switch {
	case err != nil:
		return p, err
	case forgotten:
		return p, fmt.Errorf("%w: some of the prompts in %q were done, and nothing tells which: %s and %s are gone",
			ErrNeedsOperator, r.path, r.lane.Cursor, r.lane.Sidecar)
	case rewritten:
		return p, fmt.Errorf("%w: prompts before the cursor (%d) of %q do not stand where they were written, and %s, which tells what was done, is gone",
			ErrNeedsOperator, c.value, r.path, r.lane.Sidecar)
	case c.damaged && !f.isHere():
		return p, fmt.Errorf("%w: %q is damaged, and nothing else tells which prompts are done",
			ErrNeedsOperator, r.dir.Path()+"/"+r.lane.Cursor)
	case c.damaged, c.missing && f.isHere(), f.encloses(c.value):
		p.cursor, p.aside = f.StartOffset, !c.missing
		p.moved = p.aside || p.cursor != 0
		if p.moved {
			p.note = fmt.Sprintf("the cursor was rebuilt from the entry in flight: %d", p.cursor)
		}
	case c.value > s.size:
		p.cursor, p.moved, p.fresh = 0, true, true
		p.note = fmt.Sprintf("the inbox is shorter than the cursor (%d < %d): it was truncated; starting at its first byte", s.size, c.value)
	case s.file != nil && !s.startsLine(c.value):
		p.midline = true
	}
	p.sidecar = next
	if s.file != nil {
		p.sidecar = s.note(next, p.cursor, nil)
	}
	return p, nil
}

// hasForgotten reports whether a queue without sidecar, and without a cursor that can be right,
// is one in which something was done: the file still has the line that was acknowledged last, or
// the memory of ids knows.
func (r *Reader) hasForgotten(s *source, c cursor, f *flight) (bool, error) {
	if !c.missing && c.value <= s.size || c.damaged || s.size == 0 || f.isHere() {
		return false, nil
	}
	last, err := r.lastDone()
	if err != nil {
		return false, err
	}
	if found, _, err := r.find(s, &sidecar{Last: last}); found > 0 || err != nil {
		return found > 0, err
	}
	return r.hasPassed(s)
}

// judgeSame handles a file whose bytes before the remembered cursor have not changed.
func (r *Reader) judgeSame(s *source, c cursor, m *sidecar, f *flight) (position, error) {
	p := position{cursor: c.value, sidecar: *m}
	if m.Ino != s.ino {
		if !m.Distinct {
			return p, fmt.Errorf("%w: %q is another file than before, and what was done in it is the same prompt over and over: "+
				"it may be a copy, in which they are done, or a new inbox, in which they are not", ErrNeedsOperator, r.path)
		}
		p.note = "the inbox was copied or rewritten with the same beginning; going on at the cursor"
		p.changed, p.sidecar.Ino = true, s.ino
	}
	rebuilt := m.Cursor
	if f.isHere() {
		rebuilt = max(rebuilt, f.StartOffset)
	}
	switch {
	case c.missing && m.Cursor == 0:
		p.cursor = 0 // it was never written: only blank lines were passed
	case c.missing, c.damaged, c.value > s.size, c.value != m.Cursor && !s.startsLine(c.value), f.encloses(c.value):
		p.cursor, p.moved, p.aside = rebuilt, true, !c.missing
		p.note = fmt.Sprintf("the cursor was missing or wrong; rebuilt: %d", rebuilt)
	case !s.startsLine(c.value):
		p.midline = true
	case c.value != m.Cursor && m.Ino == s.ino:
		return r.settleBetween(s, c, m, f)
	}
	return p, nil
}

// judgeShorter handles a file that is shorter than what was acknowledged in it.
func (r *Reader) judgeShorter(s *source, c cursor, m *sidecar) (position, error) {
	found, end, err := r.find(s, m)
	switch {
	case err != nil:
		return position{}, err
	case found == 1 && isLastDone(s, m, end):
		return relocate(s, c, m, end), nil
	case beginsAs(s, m):
		return position{}, fmt.Errorf("%w: %q begins as before, but is shorter (%d bytes; %d were done): it was cut, or restored from a backup",
			ErrNeedsOperator, r.path, s.size, m.Cursor)
	}
	return startAfresh(s, c, m, fmt.Sprintf(
		"the inbox is shorter than what was acknowledged (%d < %d): it was truncated or replaced; starting at its first byte", s.size, m.Cursor)), nil
}

// judgeChanged handles a file whose bytes before the cursor have changed.
func (r *Reader) judgeChanged(s *source, c cursor, m *sidecar) (position, error) {
	found, end, err := r.find(s, m)
	switch {
	case err != nil:
		return position{}, err
	case found == 1 && isLastDone(s, m, end):
		return relocate(s, c, m, end), nil
	case found == 0 && beginsAs(s, m):
		return position{}, fmt.Errorf("%w: %q begins as before, but what was done last is not in it: it was cut and written to again, or edited",
			ErrNeedsOperator, r.path)
	case beginsAs(s, m), found > 1 && m.LastHasID:
		return position{}, fmt.Errorf("%w: what was done in %q was edited, and the prompt that was done last is in it %d times",
			ErrNeedsOperator, r.path, found)
	}
	return startAfresh(s, c, m, "the inbox was replaced by another one; starting at its first byte"), nil
}

// relocate goes on after the last acknowledged line of an edited file.
func relocate(s *source, c cursor, m *sidecar, end int64) position {
	next := *m
	next.Generation = newGeneration()
	next.HeadLen, next.Head, next.First, next.Punched = 0, "", "", 0
	next.Requeued = m.Requeued.movedTo(end)
	next = s.note(next, end, nil)
	next.Last, next.LastHasID, next.Distinct = m.Last, m.LastHasID, next.Distinct || m.LastHasID
	return position{
		cursor: end, sidecar: next, moved: true, changed: true, aside: c.damaged, edited: true,
		note: fmt.Sprintf("the inbox was edited; going on after the last acknowledged line, at %d", end),
	}
}

// isLastDone reports whether a line equal to the one that was done last is that one: it has its
// own id, or all that is remembered stands before it. Otherwise an equal prompt may have been
// written again.
func isLastDone(s *source, m *sidecar, end int64) bool {
	return m.LastHasID || m.Ino == s.ino && hasHead(s, m) && s.sum(max(0, end-window), end) == m.Tail
}

// beginsAs reports whether a file is what is left of the one that was there before, and not a new
// one that is filled. What is appended to it changes nothing.
func beginsAs(s *source, m *sidecar) bool {
	if s.size == 0 {
		return false
	}
	head, err := s.bytes(0, min(s.size, window))
	return err == nil && (hasHead(s, m) || m.First != "" && firstID(head) == m.First || m.Punched > 0 && m.Ino == s.ino && head[0] == 0)
}

func hasHead(s *source, m *sidecar) bool {
	return m.HeadLen > 0 && m.HeadLen <= s.size && s.sum(0, m.HeadLen) == m.Head
}

// find counts how often the last acknowledged line occurs in the file, and returns the end of the
// last occurrence.
func (r *Reader) find(s *source, m *sidecar) (found int, end int64, err error) {
	if m.Last == "" {
		return 0, 0, nil
	}
	l := linesOf(s.file, min(m.Punched, s.size), s.size, r.maxEntry, mostFind)
	for {
		got, err := l.read()
		switch {
		case errors.Is(err, io.EOF):
			return found, end, nil
		case errors.Is(err, ErrTooMuch):
			return 0, 0, fmt.Errorf("%w: %q was replaced or edited, and is too large to look in it for the prompt that was done last",
				ErrNeedsOperator, r.path)
		case err != nil:
			return 0, 0, fmt.Errorf("cannot read %q: %v", r.path, err)
		case got.complete && got.id() == m.Last:
			found, end = found+1, got.end
		}
	}
}
