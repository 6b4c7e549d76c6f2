package inbox

import (
	"errors"
	"fmt"
	"io"
)

// verdict says where the queue continues, and what must be repaired first.
type verdict struct {
	cursor int64
	meta   meta
	// moved is true when the cursor file must be rewritten, changed when the
	// sidecar must be. aside is true when the cursor file is corrupt and is kept as
	// evidence.
	moved, changed, aside bool
	// midline is true when heartbeat-rs acknowledged an unterminated line and the
	// rest of that line was written later.
	midline bool
	// edited is true when the same lines are now at other offsets.
	edited bool
	// fresh is true for an inbox that was not seen before.
	fresh bool
	note  string
}

// judge decides where the queue continues. It only reads. It must never land in the
// middle of a line or skip an entry; when it cannot tell, it returns
// ErrNeedsOperator. Whatever is appended to an inbox about which it asks, it asks on;
// and what it was seen to ask, it asks until a person has answered, or what was done
// stands in the inbox again.
func (q *lane) judge(s *source, c cursorState, m *meta, f *flight) (verdict, error) {
	v, err := q.judgeFacts(s, c, m, f)
	if err != nil || m == nil || m.Asks == "" {
		return v, err
	}
	if v.fresh || v.edited || m.unknown() {
		return v, fmt.Errorf("%w: %s", ErrNeedsOperator, m.Asks)
	}
	v.meta.Asks, v.changed = "", true
	return v, nil
}

func (q *lane) judgeFacts(s *source, c cursorState, m *meta, f *flight) (verdict, error) {
	if m == nil {
		return q.judgeUnknown(s, c, f)
	}
	if s.file == nil {
		if m.Ino == 0 && m.Cursor == 0 && !c.corrupt && c.value == 0 {
			return verdict{meta: *m}, nil
		}
		if m.Ino == 0 || m.Cursor == 0 && c.value == 0 {
			return fresh(s, c, m, ""), nil
		}
		return fresh(s, c, m, "the inbox is gone; starting at the first byte of the next one"), nil
	}
	switch {
	case m.Ino == 0 || m.Cursor == 0 && m.Ino != s.ino:
		// Nothing in this inbox was acknowledged, so there is nothing to confuse.
		v := verdict{meta: s.note(*m, 0, nil), changed: true, cursor: 0}
		v.moved, v.aside = c.corrupt || c.value != 0, c.corrupt
		if m.Ino != 0 && (f == nil || !f.here) {
			v.meta.Generation = newGeneration()
			v.meta.Requeued = m.Requeued.movedTo(0)
		}
		return v, nil
	case s.size < m.Cursor:
		return q.judgeShorter(s, c, m)
	case s.sum(max(0, m.Cursor-window), m.Cursor) == m.Tail:
		return q.judgeSame(s, c, m, f)
	}
	return q.judgeChanged(s, c, m)
}

// fresh starts at the first byte of an inbox that was not seen before.
func fresh(s *source, c cursorState, m *meta, note string) verdict {
	next := meta{Generation: newGeneration(), Requeued: m.Requeued, Archive: m.Archive}
	return verdict{
		meta: s.note(next, 0, nil), changed: true, fresh: true,
		moved: c.corrupt || c.value != 0, aside: c.corrupt, note: note,
	}
}

// judgeUnknown handles a directory without our sidecar: heartbeat-rs's, or one that
// lost its sidecar. Only the cursor itself can be checked.
func (q *lane) judgeUnknown(s *source, c cursorState, f *flight) (verdict, error) {
	next := meta{Generation: newGeneration()}
	if f != nil && f.here && f.Generation > 0 {
		next.Generation = f.Generation
	}
	v := verdict{changed: s.file != nil, cursor: c.value}
	if lost, err := q.forgotten(s, c, f); err != nil {
		return v, err
	} else if lost {
		return v, fmt.Errorf("%w: some of the prompts in %q were done, and nothing tells which: %s and %s are gone",
			ErrNeedsOperator, q.path, q.cursor, q.meta)
	}
	rewritten, err := q.rewritten(s, c, f)
	switch {
	case err != nil:
		return v, err
	case rewritten:
		return v, fmt.Errorf("%w: prompts before the cursor (%d) of %q do not stand where they were written, and %s, which tells what was done, is gone",
			ErrNeedsOperator, c.value, q.path, q.meta)
	case c.corrupt && (f == nil || !f.here):
		return v, fmt.Errorf("%w: %q is damaged, and nothing else tells which prompts are done",
			ErrNeedsOperator, q.dir.Path()+"/"+q.cursor)
	case c.corrupt, c.missing && f != nil && f.here, f != nil && f.here && f.inside(c.value):
		v.cursor, v.aside = f.StartOffset, !c.missing
		v.moved = v.aside || v.cursor != 0
		if v.moved {
			v.note = fmt.Sprintf("the cursor was rebuilt from the entry in flight: %d", v.cursor)
		}
	case c.value > s.size:
		v.cursor, v.moved, v.fresh = 0, true, true
		v.note = fmt.Sprintf("the inbox is shorter than the cursor (%d < %d): it was truncated; starting at its first byte", s.size, c.value)
	case s.file != nil && !s.startsLine(c.value):
		v.midline = true
	}
	if s.file != nil {
		v.meta = s.note(next, v.cursor, nil)
	} else {
		v.meta = next
	}
	return v, nil
}

// forgotten reports whether a queue without sidecar, and without a cursor that can be
// right, is one in which something was done: the inbox still has the line that was
// acknowledged last, or the memory of ids knows.
func (q *lane) forgotten(s *source, c cursorState, f *flight) (bool, error) {
	if !c.missing && c.value <= s.size || c.corrupt || s.size == 0 || f != nil && f.here {
		return false, nil
	}
	last, err := q.lastDone()
	if err != nil {
		return false, err
	}
	if found, _, err := q.find(s, &meta{Last: last}); found > 0 || err != nil {
		return found > 0, err
	}
	return q.everPassed(s) // the outbox is gone, too, or was rotated, or the inbox was cut
}

// judgeSame handles an inbox whose bytes before the remembered cursor have not
// changed.
func (q *lane) judgeSame(s *source, c cursorState, m *meta, f *flight) (verdict, error) {
	v := verdict{cursor: c.value, meta: *m}
	if m.Ino != s.ino {
		if !m.Distinct {
			return v, fmt.Errorf("%w: %q is another file than before, and what was done in it is the same prompt over and over: "+
				"it may be a copy, in which they are done, or a new inbox, in which they are not", ErrNeedsOperator, q.path)
		}
		v.note = "the inbox was copied or rewritten with the same beginning; going on at the cursor"
		v.changed, v.meta.Ino = true, s.ino
	}
	rebuilt := m.Cursor
	if f != nil && f.here {
		rebuilt = max(rebuilt, f.StartOffset)
	}
	switch {
	case c.missing && m.Cursor == 0:
		v.cursor = 0 // it was never written: only blank lines were passed
	case c.missing, c.corrupt, c.value > s.size,
		c.value != m.Cursor && !s.startsLine(c.value),
		f != nil && f.here && f.inside(c.value):
		v.cursor, v.moved, v.aside = rebuilt, true, !c.missing
		v.note = fmt.Sprintf("the cursor was missing or wrong; rebuilt: %d", rebuilt)
	case !s.startsLine(c.value):
		v.midline = true
	case c.value != m.Cursor && m.Ino == s.ino:
		return q.disagree(s, c, m, f)
	}
	return v, nil
}

// judgeShorter handles an inbox that is shorter than what was acknowledged.
func (q *lane) judgeShorter(s *source, c cursorState, m *meta) (verdict, error) {
	found, end, err := q.find(s, m)
	if err != nil {
		return verdict{}, err
	}
	if found == 1 && lastDoneEnds(s, m, end) {
		return relocated(s, c, m, end), nil
	}
	if beginsAs(s, m) {
		return verdict{}, fmt.Errorf("%w: %q begins as before, but is shorter (%d bytes; %d were done): it was cut, or restored from a backup",
			ErrNeedsOperator, q.path, s.size, m.Cursor)
	}
	return fresh(s, c, m, fmt.Sprintf(
		"the inbox is shorter than what was acknowledged (%d < %d): it was truncated or replaced; starting at its first byte",
		s.size, m.Cursor)), nil
}

// judgeChanged handles an inbox whose bytes before the cursor have changed.
func (q *lane) judgeChanged(s *source, c cursorState, m *meta) (verdict, error) {
	found, end, err := q.find(s, m)
	if err != nil {
		return verdict{}, err
	}
	switch {
	case found == 1 && lastDoneEnds(s, m, end):
		return relocated(s, c, m, end), nil
	case found == 0 && beginsAs(s, m):
		return verdict{}, fmt.Errorf("%w: %q begins as before, but what was done last is not in it: it was cut and written to again, or edited",
			ErrNeedsOperator, q.path)
	case beginsAs(s, m), found > 1 && m.LastHasID:
		return verdict{}, fmt.Errorf("%w: what was done in %q was edited, and the prompt that was done last is in it %d times",
			ErrNeedsOperator, q.path, found)
	}
	return fresh(s, c, m, "the inbox was replaced by another one; starting at its first byte"), nil
}

// relocated continues after the last acknowledged line of an edited inbox.
func relocated(s *source, c cursorState, m *meta, end int64) verdict {
	next := *m
	next.Generation = newGeneration()
	next.HeadLen, next.Head, next.First, next.Punched = 0, "", "", 0
	next.Requeued = m.Requeued.movedTo(end)
	last, lastHasID := m.Last, m.LastHasID
	next = s.note(next, end, nil)
	next.Last, next.LastHasID = last, lastHasID
	next.Distinct = next.Distinct || lastHasID
	return verdict{
		cursor: end, meta: next, moved: true, changed: true, aside: c.corrupt, edited: true,
		note: fmt.Sprintf("the inbox was edited; going on after the last acknowledged line, at %d", end),
	}
}

// lastDoneEnds reports whether a line equal to the one that was done last is that one:
// it has its own id, or all that is remembered stands before it. Otherwise an equal
// prompt may have been written again.
func lastDoneEnds(s *source, m *meta, end int64) bool {
	return m.LastHasID || m.Ino == s.ino && sameHead(s, m) && s.sum(max(0, end-window), end) == m.Tail
}

// beginsAs reports whether an inbox is what is left of the one that was there before,
// and not a new one that is filled. What is appended to it changes nothing.
func beginsAs(s *source, m *meta) bool {
	if s.size == 0 {
		return false
	}
	head, err := s.bytes(0, min(s.size, window))
	return err == nil && (sameHead(s, m) || m.First != "" && firstID(head) == m.First || m.Punched > 0 && m.Ino == s.ino && head[0] == 0)
}

func sameHead(s *source, m *meta) bool {
	return m.HeadLen > 0 && m.HeadLen <= s.size && s.sum(0, m.HeadLen) == m.Head
}

// find counts how often the last acknowledged line occurs in the inbox, and returns
// the end of the last occurrence.
func (q *lane) find(s *source, m *meta) (found int, end int64, err error) {
	if m.Last == "" {
		return 0, 0, nil
	}
	l := q.lines(s.file, min(m.Punched, s.size), s.size, q.maxEntry, mostFind)
	for {
		got, err := l.read()
		if errors.Is(err, io.EOF) {
			return found, end, nil
		}
		if errors.Is(err, ErrTooMuch) {
			return 0, 0, fmt.Errorf("%w: %q was replaced or edited, and is too large to look in it for the prompt that was done last",
				ErrNeedsOperator, q.path)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("cannot read %q: %v", q.path, err)
		}
		if got.complete && got.id() == m.Last {
			found, end = found+1, got.end
		}
	}
}
