package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook/durable"
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
func (q *Queue) disturbed(v *view) string {
	why := q.disturbance(v)
	if why != "" && v.source.file == nil {
		if _, err := q.dir.Stat(q.name); err == nil {
			return "" // it came after the look
		}
	}
	return why
}

func (q *Queue) disturbance(v *view) string {
	s, m := v.source, v.before
	kept, err := q.dir.Stat(q.keptName())
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

// overwritten reports whether the entry that was remembered last, and is not done,
// does not stand where it was written.
func (q *Queue) overwritten(s *source, v *view) bool {
	l, err := q.dir.LastLine(idsFile, 4<<10)
	if err != nil || l == nil {
		return false
	}
	k := splitID(append(l, '\n'))
	ino := v.was()
	if len(k.id) == 0 || ino != 0 && k.ino != ino || k.start < v.passed() {
		return false
	}
	if s.file == nil {
		return true
	}
	// The entry was written before it was remembered; a line that was dropped is blank.
	return !s.now().holds(k, " ")
}

// Gone is what somebody else took out of the inbox, as far as nobody has filed it
// yet.
type Gone struct {
	Why     string   // what happened to the inbox; "" if nothing is missing
	Entries int      // at least one is missing
	IDs     []string // of the first ones, as far as they have one
}

// mostGone is how many ids Missing returns.
const mostGone = 20

// Missing says which queued entries do not stand in the inbox any more. The next
// change to the queue, or Settle, files them as dead letters. It needs no lock and
// changes nothing.
func (q *Queue) Missing() (Gone, error) {
	v, err := q.look()
	if err != nil {
		return Gone{}, err
	}
	defer v.close()
	if v.disturbed == "" {
		return Gone{}, nil
	}
	g := Gone{Why: v.disturbed}
	_, err = q.missing(v, func(d DeadEntry) error {
		if g.Entries++; len(g.IDs) < mostGone && d.ID != "" {
			g.IDs = append(g.IDs, d.ID)
		}
		return nil
	})
	if g.Entries == 0 {
		return Gone{}, err
	}
	return g, err
}

// fileMissing files what is missing, and remembers what is there now.
func (h *Held) fileMissing(v *view) error {
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
func (h *Held) keepAnew(s *source, aside bool) error {
	if info, err := h.dir.Stat(h.keptName()); aside && err == nil && (s.file == nil || !os.SameFile(info, s.info)) {
		if err := h.setAside(h.keptName()); err != nil {
			return err
		}
	}
	err := h.dir.Remove(h.keptName())
	if info, statErr := h.dir.Stat(h.keptName()); statErr == nil && info.IsDir() {
		err = h.setAside(h.keptName())
	}
	h.keep(s)
	return err
}

// keep gives the inbox's file a second name, if it has none and the file system can:
// without one, only the ids and sizes of lost entries are known.
func (q *Queue) keep(s *source) {
	if s.file == nil {
		return
	}
	name := q.keptName()
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
func (q *Queue) missing(v *view, do func(DeadEntry) error) (*present, error) {
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
	old, err := q.openKept(v.source)
	if err != nil {
		return p, err
	}
	if old == nil {
		return p, q.missingByID(v, known, p, report)
	}
	defer old.close()
	return p, q.missingIn(old, v, p, report)
}

// openKept opens the file that was the inbox before; nil if it is not there any
// more, or still is the inbox.
func (q *Queue) openKept(s *source) (*source, error) {
	old, err := q.openNamed(q.keptName(), os.O_RDONLY)
	if err != nil || old.file == nil {
		return nil, nil // something else has its name: then nothing is known of it
	}
	if s.file != nil && os.SameFile(old.info, s.info) {
		old.close()
		return nil, nil
	}
	return old, nil
}

// present is what stands in the inbox behind the cursor.
type present struct {
	counts   map[[8]byte]int // :: id, or the bytes of a line without one → how often
	ids      []knownID
	reported int
}

func keyOf(id string, raw []byte) (k [8]byte) {
	sum := sha256.Sum256(raw)
	if id != "" {
		sum = sha256.Sum256([]byte("id:" + id))
	}
	copy(k[:], sum[:])
	return k
}

// take counts down, and reports whether it was there.
func (p *present) take(k [8]byte) bool {
	n := p.counts[k]
	if n > 0 {
		p.counts[k]--
	}
	return n > 0
}

func (q *Queue) present(v *view) (*present, error) {
	p := &present{counts: map[[8]byte]int{}}
	if v.source.file == nil {
		return p, nil
	}
	l := q.lines(v.source.file, v.verdict.cursor, v.source.now().size, q.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if err != nil {
			return p, ignoreEOF(err)
		}
		if got.tooLarge || !got.complete {
			continue
		}
		d := decode(got.raw, got.start == 0)
		if d.kind != text {
			continue
		}
		p.counts[keyOf(d.id, got.raw)]++
		if d.id != "" && len(p.ids) < idsBatch {
			p.ids = append(p.ids, knownID{ID: d.id, Ino: v.source.ino, Start: new(got.start)})
		}
	}
}

// missingIn compares with the file that was the inbox before.
func (q *Queue) missingIn(old *source, v *view, p *present, do func(DeadEntry) error) error {
	from, certain := doneOf(old, v)
	var generation int64
	if v.before != nil {
		generation = v.before.Generation
	}
	done := map[[8]byte]bool{}
	if !certain {
		if err := q.everDone(done); err != nil {
			return err
		}
	}
	l := q.lines(old.file, from, old.size, q.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if err != nil {
			return ignoreEOF(err)
		}
		e := got.entry(generation)
		if e == nil || !got.complete || v.flies(e.ID, e.Raw) {
			continue
		}
		if k := keyOf(e.ID, e.Raw); p.take(k) || done[k] {
			continue
		}
		d := DeadEntry{
			EntryID: entryID(e.Raw), StartOffset: e.Start, EndOffset: e.End, DeliveryID: e.DeliveryID, ID: e.ID, Source: e.Source,
		}
		d.setRaw(e.Raw)
		if err := do(d); err != nil {
			return err
		}
	}
}

// doneOf returns how far the file that was the inbox before was done. Where that is
// not certain, it is the beginning.
func doneOf(old *source, v *view) (from int64, certain bool) {
	m := v.before
	switch {
	case m == nil && !v.cursorFile.corrupt && !v.cursorFile.missing && v.cursorFile.value <= old.size && old.startsLine(v.cursorFile.value):
		return v.cursorFile.value, true
	case m != nil && m.Cursor == 0:
		return 0, true
	case m != nil && m.Cursor <= old.size && old.sum(max(0, m.Cursor-window), m.Cursor) == m.Tail:
		return m.Cursor, true
	}
	return 0, false
}

// flies reports whether an entry is the one in flight, whose record has its text.
func (v *view) flies(id string, raw []byte) bool {
	f := v.flight
	return f != nil && !v.stale && (id != "" && f.ID == id || bytes.Equal(f.raw, raw))
}

// everDone finds what was done or given up before.
func (q *Queue) everDone(done map[[8]byte]bool) error {
	for d, err := range q.Deliveries() {
		if errors.Is(err, durable.ErrNotRegular) {
			continue
		}
		if err != nil {
			return err
		}
		done[keyIn(d.ID, d.EntryID)] = true
	}
	_, err := q.eachDead(&Mark{}, mostRecords, func(_ []byte, d *DeadEntry) bool {
		if d != nil {
			done[keyIn(d.ID, d.EntryID)] = true
		}
		return true
	})
	if errors.Is(err, durable.ErrNotRegular) {
		err = nil // it is set aside when something is filed
	}
	return err
}

// keyIn is keyOf for a record, which has the sha256 of the line.
func keyIn(id, entry string) (k [8]byte) {
	if id != "" {
		return keyOf(id, nil)
	}
	_, _ = hex.Decode(k[:], []byte(entry[:min(2*len(k), len(entry))])) // one that is none matches nothing
	return k
}

// missingByID compares with the memory of ids, where the text of what is missing is
// not known. Of lines that others wrote only the size is known: they are one dead
// letter.
func (q *Queue) missingByID(v *view, known []knownID, p *present, do func(DeadEntry) error) error {
	var generation, size int64
	if m := v.before; m != nil {
		generation, size = m.Generation, m.Size
	}
	if len(known) == 0 && size == 0 && (v.flight == nil || v.flight.InboxSize == 0) {
		return nil
	}
	filed := map[[8]byte]bool{}
	if err := q.everDone(filed); err != nil {
		return err
	}
	for _, k := range known {
		key := keyOf(k.ID, nil)
		if p.take(key) || v.flies(k.ID, nil) || filed[key] {
			continue
		}
		filed[key] = true // a memory that was rebuilt may hold it twice
		err := do(DeadEntry{
			EntryID: entryID([]byte(k.ID)), StartOffset: *k.Start, EndOffset: *k.Start, ID: k.ID,
			DeliveryID: deliveryID(generation, *k.Start, []byte(k.ID)),
		})
		if err != nil {
			return err
		}
	}
	if p.reported > 0 {
		return nil
	}
	return q.missingBytes(v, generation, size, len(known), do)
}

// missingBytes reports lines of others of which only the size is known.
func (q *Queue) missingBytes(v *view, generation, size int64, known int, do func(DeadEntry) error) error {
	from := v.passed()
	if f := v.flight; f != nil && f.Generation == generation {
		size = max(size, f.InboxSize)
		if !v.stale {
			from = max(from, f.EndOffset)
		}
	}
	left := int64(0)
	if v.source.file != nil && !v.verdict.fresh {
		left = v.source.size - v.behind()
	}
	lost := size - from - left
	if lost <= 0 || known > 0 {
		return nil
	}
	return do(DeadEntry{
		EntryID: entryID(nil), StartOffset: from, EndOffset: size, Length: lost, DeliveryID: deliveryID(generation, from, []byte(strconv.FormatInt(size, 10))),
	})
}

// remembered returns what the memory of ids holds about a file since it was last
// disturbed, from an offset on; 0 stands for any file.
func (q *Queue) remembered(ino uint64, from int64) (known []knownID, err error) {
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

// eachID calls do for each line of the memory of ids; what it gets is valid until do
// returns.
func (q *Queue) eachID(do func(splitLine)) error {
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
		do(splitID(append(got.raw, '\n')))
	}
}

// everPassed reports whether the memory of ids knows that something in this file was
// done.
func (q *Queue) everPassed(s *source) (passed bool, err error) {
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

// rewritten reports whether, in a queue without sidecar, an entry before the cursor
// does not stand where the memory of ids knows it: then the cursor is of another file,
// or of this one before it was cut.
func (q *Queue) rewritten(s *source, c cursorState, f *flight) (rewritten bool, err error) {
	if s.file == nil || c.missing || c.corrupt || c.value > s.size || f != nil && f.here {
		return false, nil
	}
	err = q.eachID(func(k splitLine) {
		switch {
		case k.disturbed:
			rewritten = false
		case len(k.id) > 0 && k.ino == s.ino && k.start >= 0 && k.start < c.value:
			rewritten = rewritten || !s.holds(k, " \x00") // dropped, or its blocks were given back
		}
	})
	return rewritten, err
}

// holds reports whether an entry stands where it was written, or one of the bytes that
// may have taken its place.
func (s *source) holds(k splitLine, or string) bool {
	want := append([]byte(envelopeStart+`:1,"id":"`), k.raw...)
	got, err := s.bytes(k.start, k.start+int64(len(want)))
	return err == nil && (bytes.Equal(got, want) || strings.IndexByte(or, got[0]) >= 0)
}

// begins records, once for each file, that something in it is done: should the
// cursor and the sidecar both be lost, nothing in it may be repeated unasked.
func (q *Queue) begins(s *source, done int64) {
	_ = q.writeIDs([]knownID{{Start: &done, At: time.Now().Unix(), Ino: s.ino}})
}

// remark begins the memory of ids anew for the file that is the inbox now: what was
// remembered before says nothing about it. A failure costs only what is known when
// the inbox is disturbed again.
func (q *Queue) remark(s *source, there []knownID) {
	ids := make([]knownID, 0, len(there)+1)
	now := time.Now().Unix()
	ids = append(ids, knownID{At: now, Ino: s.ino})
	for _, k := range there {
		k.At = now
		ids = append(ids, k)
	}
	_ = q.writeIDs(ids)
}
