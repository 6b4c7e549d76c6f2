package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Somebody else may take queued entries out of the inbox: by putting another file in
// its place, by cutting or overwriting it, by removing it. What was queued is known
// from three things: the second name of the inbox's file, which still leads to the
// old one (then the entries' text is known); the memory of ids; and the size that the
// inbox had. Each entry that does not stand in the inbox any more becomes a dead
// letter, Lost.

// lossBatch is how many lost entries are held at once while they are filed, lossBytes
// how much of them; mostLost bounds how many are filed one by one.
const (
	lossBatch = 256
	lossBytes = 8 << 20
	mostLost  = 10_000
)

// disturbed says what somebody else has done to the inbox that may have taken queued
// entries out of it; "" if nothing shows that. Entries that are appended meanwhile, for
// which the queue is not locked, show nothing.
func (q *lane) disturbed(v *view) string {
	why := q.disturbance(v)
	if why != "" && v.source.file == nil {
		if _, err := q.dir.Stat(q.name); err == nil {
			return "" // it came after the look
		}
	}
	return why
}

func (q *lane) disturbance(v *view) string {
	s, m := v.source, v.before
	kept, err := q.dir.Stat(q.kept)
	named := err == nil && kept.Mode().IsRegular()
	switch {
	case s.file == nil && (named || m != nil && m.Size > m.Cursor || q.overwritten(s, v)):
		return "the inbox was removed"
	case s.file == nil:
		return ""
	case named && !os.SameFile(kept, s.info), !named && m != nil && m.Ino != 0 && m.Ino != s.ino:
		return "another file took the inbox's place"
	case m != nil && s.size < m.Size, v.flight != nil && m != nil && v.flight.Generation == m.Generation && s.size < v.flight.InboxSize:
		return "the inbox was cut"
	case v.verdict.fresh, v.verdict.edited, q.overwritten(s, v):
		return "the inbox was overwritten"
	}
	return ""
}

// passed is the offset up to which the inbox was done before it was disturbed.
func (v *view) passed() int64 {
	if v.before != nil {
		return v.before.Cursor
	}
	return v.cursorFile.value
}

// was is the number of the file that the inbox was before, or 0: that is not known.
func (v *view) was() uint64 {
	if v.before != nil && v.before.Ino != 0 {
		return v.before.Ino
	}
	return v.source.ino
}

// overwritten reports whether an entry that was remembered lately, and is not done,
// does not stand where it was written. That is asked of the last one, and of those in
// whose place another was appended later: between the two the inbox was cut.
func (q *lane) overwritten(s *source, v *view) bool {
	ino, passed := v.was(), v.passed()
	now := s.now()
	lowest := int64(-1) // where the first of those begins that were remembered later
	for _, k := range slices.Backward(q.recentIDs()) {
		if ino != 0 && k.ino != ino {
			continue
		}
		asked := lowest < 0 || k.start >= lowest
		// The entry was written before it was remembered.
		if asked && k.start >= passed && (s.file == nil || !now.holds(k, false)) {
			return true
		}
		if lowest < 0 || k.start < lowest {
			lowest = k.start
		}
	}
	return false
}

// Gone is what somebody else took out of the inbox, as far as nobody has filed it
// yet.
type Gone struct {
	Why     string   // what happened to the inbox; "" if nothing is missing
	Entries int      // at least one is missing
	IDs     []string // of the first ones, as far as they have one
	// Textless are those of them whose text went with the inbox.
	Textless int
}

func (g *Gone) add(d DeadEntry) {
	if g.Entries++; len(g.IDs) < mostGone && d.ID != "" {
		g.IDs = append(g.IDs, d.ID)
	}
	if d.Raw() == nil {
		g.Textless++
	}
}

// mostGone is how many ids Missing returns.
const mostGone = 20

// Missing says which queued entries do not stand in the inbox any more. The next
// change to the queue, or Settle, files them as dead letters; where the queue asks a
// person, the answer does. It needs no lock and changes nothing.
func (q *Queue) Missing() (Gone, error) {
	var all Gone
	for _, l := range q.lanes() {
		g, err := l.gone()
		if err != nil {
			return g, err
		}
		all.Why, all.Entries = cmp.Or(all.Why, g.Why), all.Entries+g.Entries
		all.Textless += g.Textless
		all.IDs = append(all.IDs, g.IDs[:min(len(g.IDs), mostGone-len(all.IDs))]...)
	}
	return all, nil
}

func (q *lane) gone() (Gone, error) {
	v, err := q.look()
	if errors.Is(err, ErrNeedsOperator) {
		return q.goneAsking()
	}
	if err != nil {
		return Gone{}, err
	}
	defer v.close()
	if v.disturbed == "" {
		return Gone{}, nil
	}
	g := Gone{Why: v.disturbed}
	_, err = q.missing(v, func(d DeadEntry) error {
		g.add(d)
		return nil
	})
	if g.Entries == 0 {
		return Gone{}, err
	}
	return g, err
}

// fileMissing files what is missing, and remembers what is there now.
func (h *heldLane) fileMissing(v *view) error {
	var batch []DeadEntry
	n, size := 0, 0
	flush := func() error {
		err := h.file(batch)
		batch, size = batch[:0], 0
		return err
	}
	p, err := h.missing(v, func(d DeadEntry) error {
		n++
		batch, size = append(batch, d), size+len(d.RawLine)
		if len(batch) < lossBatch && size < lossBytes {
			return nil
		}
		return flush()
	})
	more := p.reported - mostLost
	unread := errors.Is(err, ErrTooMuch)
	if unread {
		h.note("%s; not all of what may be missing could be read: %v", v.disturbed, err)
		err = nil
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("cannot file what is missing in the inbox: %w", err)
	}
	if n > 0 {
		h.note("%s: what was queued in it was filed as %d dead letters, %s", v.disturbed, n, Lost)
	}
	if more > 0 {
		h.note("%s: %d more are missing, and were not filed", v.disturbed, more)
	}
	h.remark(v.source, p.ids)
	return h.keepAnew(v.source, more > 0 || unread)
}

// keepAnew gives the inbox's file its second name, in place of the one that had it.
// With aside, that has entries which stand nowhere else, and is kept for a person.
func (h *heldLane) keepAnew(s *source, aside bool) error {
	if info, err := h.dir.Stat(h.kept); aside && err == nil && (s.file == nil || !os.SameFile(info, s.info)) {
		if err := h.quarantine(h.kept); err != nil {
			return err
		}
	}
	err := h.dir.Remove(h.kept)
	if info, statErr := h.dir.Stat(h.kept); statErr == nil && info.IsDir() {
		err = h.quarantine(h.kept)
	}
	h.keep(s)
	return err
}

// keep gives the inbox's file a second name, if it has none and the file system can:
// without one, only the ids and sizes of lost entries are known.
func (q *lane) keep(s *source) {
	if s.file == nil {
		return
	}
	name := q.kept
	if _, err := q.dir.Stat(name); !errors.Is(err, fs.ErrNotExist) || q.dir.Link(q.name, name) != nil {
		return
	}
	// Meanwhile the inbox may have been replaced; some file systems number each name.
	if kept, err := q.dir.Stat(name); err == nil && !os.SameFile(kept, s.info) {
		_ = q.dir.Remove(name)
	}
}

// missing calls do with a dead letter for each entry that was queued and is neither
// in the inbox behind the cursor nor in flight, up to mostLost of them. It returns what
// stands there.
func (q *lane) missing(v *view, do func(DeadEntry) error) (*present, error) {
	// What is remembered stands in the inbox by then, so it is read first.
	known, err := q.remembered(v.was(), v.passed())
	if err != nil {
		return &present{}, err
	}
	p, err := q.present(v)
	if err != nil { // nothing can be compared
		return &present{}, err
	}
	report := func(d DeadEntry) error {
		if p.reported++; p.reported > mostLost {
			return nil
		}
		d.Reason, d.Cause, d.At = Lost, v.disturbed, time.Now().UTC()
		return do(d)
	}
	old := q.openKept(v.source)
	if old == nil {
		return p, q.missingByID(v, known, p, report)
	}
	defer old.close()
	there, err := q.missingIn(old, v, p, report)
	if err != nil {
		return p, err
	}
	known = slices.DeleteFunc(known, func(k knownID) bool { return there[keyOf(k.ID, nil)] })
	if len(known) == 0 {
		return p, nil
	}
	return p, q.missingByID(v, known, p, report) // the old file was cut before
}

// openKept opens the file that was the inbox before; nil if it is not there any
// more, or still is the inbox.
func (q *lane) openKept(s *source) *source {
	old, err := q.openNamed(q.kept, os.O_RDONLY)
	if err != nil || old.file == nil {
		return nil // something else has its name: then nothing is known of it
	}
	if s.file != nil && os.SameFile(old.info, s.info) {
		old.close()
		return nil
	}
	return old
}
