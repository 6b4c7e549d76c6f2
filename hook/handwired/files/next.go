package files

import (
	"errors"
	"fmt"
	"io"
	"time"

	"heartbeat/hook/durable"
)

// Next returns the first entry after the cursor. It skips blank lines and files torn or oversized
// ones as dead letters. It returns ErrEmpty when there is no entry, and ErrNeedsOperator when it
// cannot go on. While an entry is in flight, it searches behind that and files nothing.
//
// A last line without a newline is not handed over. When its writer has been quiet for 5 seconds
// and no process has the inbox open for writing (Linux only), Next adds the newline.
func (h *Held) Next() (*Entry, error) {
	for range 2 { // a completed last line is read in the second round
		v, err := h.settle()
		if err != nil {
			return nil, err
		}
		e, completed, err := h.nextOf(v)
		v.Close()
		if err != nil || e != nil {
			return e, err
		}
		if !completed {
			break
		}
	}
	return nil, ErrEmpty
}

func (h *Held) nextOf(v *View) (e *Entry, completed bool, err error) {
	if v.source.file == nil {
		return nil, false, nil
	}
	from := v.behind()
	passed := passing{held: h, view: v, idle: v.flight != nil}
	l := linesOf(v.source.file, from, v.source.size, h.maxEntry, mostLines)
	for {
		got, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, fmt.Errorf("cannot read %q: %w", h.path, err)
		}
		if err != nil || !got.complete {
			if flushErr := passed.flush(); flushErr != nil {
				return nil, false, flushErr
			}
			return nil, err == nil && h.complete(v.source, got), nil
		}
		midline := v.at.midline && got.start == from
		if e := h.entry(got, v.Generation()); e != nil && !midline {
			return e, false, passed.flush()
		}
		if err := passed.add(got, midline); err != nil {
			return nil, false, err
		}
	}
}

// passing collects the lines that Next passes: blank ones and dead letters. A run of torn lines
// costs one sync and one cursor write, not one each.
type passing struct {
	held         *Held
	view         *View
	from         int64 // offset of the first line since the last flush
	to           int64 // the cursor can move here
	dead         []Dead
	idle         bool // an entry is in flight: nothing is passed
	any, flushed bool // something is collected; something was flushed
}

const (
	passBatch = 1024
	passBlank = 1 << 20 // how many bytes of blank lines are passed before the cursor is moved
)

func (p *passing) add(l line, midline bool) error {
	if p.idle {
		return nil
	}
	if !p.any {
		p.any, p.from = true, l.start
	}
	p.to = l.end
	if d, is := p.held.deadLine(l, midline, p.view.Generation()); is {
		p.dead = append(p.dead, d)
	}
	if len(p.dead) >= passBatch || p.to-p.from > passBlank {
		return p.flush()
	}
	return nil
}

// flush makes the dead letters durable and then moves the cursor. A few blank lines alone are not
// worth a write: the next acknowledgement moves past them.
func (p *passing) flush() error {
	if !p.any || len(p.dead) == 0 && p.to-p.from <= passBlank {
		return nil
	}
	file := p.held.file
	if p.flushed { // only what comes first can have been filed by a call that was interrupted
		file = func(dead []Dead) error { return p.held.fileBut(nil, dead) }
	}
	if err := file(p.dead); err != nil {
		return err
	}
	for _, d := range p.dead {
		p.held.note("a line of %d bytes at offset %d was filed as a dead letter: %s", d.EndOffset-d.StartOffset, d.StartOffset, d.Reason)
	}
	p.dead, p.any, p.flushed = nil, false, true
	if err := p.held.advance(p.view, p.to, nil); err != nil {
		return err
	}
	return p.held.dir.Sync()
}

// advance moves the cursor forward. last is the line before the new cursor, if known: then it is an
// acknowledged line, which Offer has synced.
//
// The sidecar is written first. After a crash between the two writes the cursor is merely behind,
// and the outbox shows that the entry in flight is done. The other way round, the sidecar would
// not know the bytes up to the cursor if the inbox were then replaced.
func (h *Held) advance(v *View, to int64, last []byte) error {
	if to <= v.at.cursor {
		return nil
	}
	if last == nil {
		if err := h.dir.SyncData(v.source.file, h.name); err != nil {
			return err
		}
	}
	m := v.source.note(v.at.sidecar, to, last)
	if err := h.writeSidecar(m); err != nil {
		return err
	}
	v.at.cursor, v.at.sidecar = to, m
	return h.writeCursor(to)
}

// completeAfter is how long a last line must not have grown before it counts as abandoned.
const completeAfter = 5 * time.Second

// complete adds the newline to a last line whose writer is gone, and reports whether it did.
func (h *Held) complete(s *source, tail line) bool {
	if tail.isBlank() || !isQuiet(s.modified, completeAfter) || durable.WritingOf(s.file) != durable.NotWritten {
		return false
	}
	if err := h.dir.Append(h.name, nil); err != nil {
		h.note("cannot complete the last line: %v", err)
		return false
	}
	h.note("the last line had no newline and nobody writes it: completed at %d bytes", s.size)
	return true
}
