package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"heartbeat/hook/durable"
)

// Queue is an opened place. Its methods need no hook lock: they append and read.
// Methods that change the queue's state belong to Held. Only one goroutine may use
// a Queue at a time.
type Queue struct {
	place    Place
	name     string // of the inbox in dir
	dir      *durable.Folder
	home     *durable.Folder // dir when they are the same
	maxEntry int64
	// tailQuiet is how long a last line without its newline must not have grown
	// before an appender ends it.
	tailQuiet time.Duration
	notes     []string
	ctx       context.Context // see Within
}

// Open opens a queue. It never blocks, whatever kind of file is at the paths. The
// folders must exist; the inbox need not. A symbolic link as inbox is resolved, and
// rejected when it leads to another folder: the files beside the inbox would not be
// found there.
func Open(p Place) (*Queue, error) {
	if !filepath.IsAbs(p.Inbox) {
		return nil, fmt.Errorf("cannot open inbox %q: the path must be absolute", p.Inbox)
	}
	q := &Queue{place: p, name: filepath.Base(p.Inbox), maxEntry: p.MaxEntry, tailQuiet: tailQuiet, ctx: context.Background()}
	if q.maxEntry <= 0 {
		q.maxEntry = DefaultMaxEntry
	}
	var err error
	if q.dir, err = durable.OpenBelow(p.Dir, filepath.Dir(p.Inbox)); err != nil {
		return nil, err
	}
	q.home = q.dir
	if p.Home != "" && filepath.Clean(p.Home) != filepath.Dir(p.Inbox) {
		if q.home, err = durable.OpenBelow(p.Dir, p.Home); err != nil {
			return nil, errors.Join(err, q.dir.Close())
		}
	}
	if err := q.resolve(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Within makes the queue's reads end when ctx ends; their error is then ctx's
// cause.
func (q *Queue) Within(ctx context.Context) { q.ctx = ctx }

// resolve follows a link from the inbox to a file in the same folder.
func (q *Queue) resolve() error {
	info, err := q.dir.Stat(q.name)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil // a missing inbox is made
	}
	target, err := filepath.EvalSymlinks(q.place.Inbox)
	if err != nil {
		return fmt.Errorf("cannot open inbox %q: %v", q.place.Inbox, err)
	}
	folder, err := os.Lstat(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("cannot open inbox %q: %v", q.place.Inbox, err)
	}
	if own, err := q.dir.Stat("."); err != nil || !os.SameFile(own, folder) {
		return fmt.Errorf("cannot open inbox %q: it is a link into another folder (%q)", q.place.Inbox, target)
	}
	q.name = filepath.Base(target)
	return nil
}

// Close releases what Open took.
func (q *Queue) Close() error {
	err := q.dir.Close()
	if q.home != q.dir {
		err = errors.Join(err, q.home.Close())
	}
	return err
}

// Notes returns what the queue repaired or gave up since the last call, as
// sentences for a log: a rebuilt cursor, a truncated inbox, a torn line that was
// filed. These are not errors of the call during which they happened.
func (q *Queue) Notes() []string {
	notes := q.notes
	q.notes = nil
	return notes
}

const maxNotes = 100

func (q *Queue) note(format string, args ...any) {
	if len(q.notes) < maxNotes {
		q.notes = append(q.notes, fmt.Sprintf(format, args...))
	}
}

// view is the state that an operation finds.
type view struct {
	source        *source
	verdict       verdict
	flight        *flight
	flightCorrupt bool
	metaCorrupt   bool
	stale         bool // the flight was acknowledged already
	// before and cursorFile are the sidecar and the cursor as they were found.
	before     *meta
	cursorFile cursorState
	disturbed  string // what somebody else has done to what was queued, or ""
}

func (v *view) close() { v.source.close() }

// behind returns the offset after which lines are neither done nor in flight.
func (v *view) behind() int64 {
	if v.flight != nil && !v.stale && v.flight.here && v.flight.EndOffset > v.verdict.cursor {
		return v.flight.EndOffset
	}
	return v.verdict.cursor
}

// look reads the queue's state and changes nothing.
func (q *lane) look() (*view, error) {
	f, corrupt, err := q.readFlight()
	if err != nil {
		return nil, err
	}
	c, err := q.readCursor()
	if err != nil {
		return nil, err
	}
	m, metaCorrupt, err := q.readMeta()
	if err != nil {
		return nil, err
	}
	// The inbox is opened last, so that it is at least as new as the files that
	// describe it.
	s, err := q.openSource(os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	v := &view{source: s, flight: f, flightCorrupt: corrupt, metaCorrupt: metaCorrupt, before: m, cursorFile: c}
	placed := f
	if f != nil && f.apart() {
		placed = nil
	}
	if placed != nil && s.file != nil {
		q.locateFlight(s, f)
	}
	if v.verdict, err = q.judge(s, c, m, placed); err != nil {
		s.close()
		return nil, err
	}
	if placed != nil {
		q.rebase(s, f, v.verdict)
		q.adopt(f, v.verdict.meta)
		sameInbox := f.here || f.Generation == v.verdict.meta.Generation
		v.stale = sameInbox && v.verdict.cursor >= f.EndOffset
	}
	q.marksOwn(s, f)
	foreign, err := q.foreignFlight(s, v.verdict, f)
	if err != nil {
		s.close()
		return nil, err
	}
	if foreign {
		v.flight, v.flightCorrupt = nil, true
	}
	v.disturbed = q.disturbed(v)
	return v, nil
}

// settle calls look and then repairs what look found. After each step, look reaches
// the same decision again.
func (h *heldLane) settle() (*view, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	v, err := h.look()
	if errors.Is(err, ErrNeedsOperator) {
		h.keepAsking(err)
	}
	if err != nil {
		return nil, err
	}
	if err := h.repair(v); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

func (h *heldLane) repair(v *view) error {
	d := v.verdict
	if d.note != "" {
		h.note("%s", d.note)
	}
	if v.disturbed != "" {
		if err := h.fileMissing(v); err != nil {
			return err
		}
		d.changed, d.meta.Size = true, v.source.size
		v.verdict.meta.Size = v.source.size
	} else {
		h.keep(v.source)
	}
	if d.aside {
		if err := h.quarantine(h.cursor); err != nil {
			return err
		}
	}
	if d.moved {
		if err := h.moveCursor(v.source, d.cursor); err != nil {
			return err
		}
	}
	if v.metaCorrupt {
		if err := h.quarantine(h.meta); err != nil {
			return err
		}
	}
	if d.changed {
		if err := h.writeMeta(d.meta); err != nil {
			return err
		}
	}
	if d.moved || d.aside {
		if err := h.dir.Sync(); err != nil {
			return err
		}
	}
	return h.fitFlight(v)
}

// fitFlight makes the record of the entry in flight fit the repaired inbox: a stale one is
// deleted, a damaged one repaired, and what was written behind it in a file that is gone is
// forgotten.
func (h *heldLane) fitFlight(v *view) error {
	if v.stale {
		v.flight, v.stale = nil, false
		return h.clearFlight()
	}
	if v.flightCorrupt {
		return h.repairFlight(v)
	}
	if f := v.flight; f != nil && v.disturbed != "" && f.InboxSize > v.source.size {
		f.InboxSize = v.source.size
		return h.writeFlight(f)
	}
	return nil
}

// repairFlight sets a corrupt record aside. The entry at the cursor may have been
// handed over, so it counts as offered, and proof is required.
func (h *heldLane) repairFlight(v *view) error {
	if err := h.quarantine(h.flight); err != nil {
		return err
	}
	h.note("the record of the entry in flight was corrupt and set aside; the entry at the cursor counts as offered")
	e, err := h.firstEntry(v.source, v.verdict.cursor, v.verdict.meta.Generation)
	if err != nil || e == nil {
		return err
	}
	f := h.newFlight(e, v.verdict.meta.Generation)
	f.resume(v.verdict.meta.Requeued)
	f.DeliveredAt = time.Now().UTC()
	v.flight = f
	return h.writeFlight(f)
}

// resume restores the counts from the entry's last time in flight.
func (f *flight) resume(r *requeued) {
	if r.is(f.StartOffset, f.DeliveryID, f.EntryID) {
		f.Tries, f.Proving = r.Tries, r.Proving
		f.Attempt++
	}
}

// evidenceKept is how many corrupt files of one name are kept.
const evidenceKept = 8

// quarantine keeps a corrupt file as evidence under another name. A file that a power
// cut emptied is not kept.
func (q *Queue) quarantine(name string) error { return q.quarantineIn(q.dir, name) }

func (q *Queue) quarantineIn(in *durable.Folder, name string) error {
	info, err := in.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		q.note("%s was empty", name)
		return in.Remove(name)
	}
	aside := name + ".corrupt-"
	to := aside + time.Now().UTC().Format("20060102T150405.000000000Z")
	q.note("%s was corrupt and is kept as %s", name, to)
	if err := in.Rename(name, to); err != nil {
		return err
	}
	return in.Thin(aside, evidenceKept)
}

// extend appends to a file of records. If something other than a file has its name,
// it is set aside; otherwise nothing could be acknowledged or filed any more.
func (h *Held) extend(in *durable.Folder, name string, data []byte) error {
	err := in.Append(name, data)
	if !errors.Is(err, durable.ErrNotRegular) {
		return err
	}
	if err := h.quarantineIn(in, name); err != nil {
		return err
	}
	return in.Append(name, data)
}

// moveCursor syncs the inbox, then writes the cursor: what is acknowledged must
// still be there after a power cut, or the cursor would be after the end.
func (h *heldLane) moveCursor(s *source, to int64) error {
	if s.file != nil {
		if err := h.dir.SyncData(s.file, h.name); err != nil {
			return err
		}
	}
	return h.writeCursor(to)
}

func (h *heldLane) writeCursor(to int64) error {
	return h.dir.Swap(h.cursor, strconv.AppendInt(nil, to, 10))
}

// writeMeta replaces the sidecar. It is synced only when it holds facts that are
// stored nowhere else. Otherwise no sync is needed: after a power cut it is rebuilt
// if lost or empty, and an old one is valid for its own offset.
func (h *heldLane) writeMeta(m meta) error {
	data, err := encodeJSON(m)
	switch {
	case err != nil:
		return err
	case m.irreplaceable():
		return h.dir.Replace(h.meta, data)
	}
	return h.dir.Put(h.meta, data)
}
