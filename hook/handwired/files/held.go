package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// Queue is the queue of a hand-wired folder.
type Queue struct {
	*Reader
	notes []string
	// quiet is how long a last line without its newline must not have grown before an append
	// ends it.
	quiet time.Duration
}

// Open opens the queue of an inbox. It never blocks, whatever kind of file is at the paths.
func Open(p Place) (*Queue, error) {
	r, err := OpenReader(p, Inbox)
	if err != nil {
		return nil, err
	}
	return &Queue{Reader: r, quiet: tailQuiet}, nil
}

const maxNotes = 100

// Notes returns what the queue has repaired or given up since the last call, as sentences for a
// log. These are not errors of the call during which they happened.
func (q *Queue) Notes() []string {
	notes := q.notes
	q.notes = nil
	return notes
}

func (q *Queue) note(format string, args ...any) {
	if len(q.notes) < maxNotes {
		q.notes = append(q.notes, fmt.Sprintf(format, args...))
	}
}

// Peek returns the entry in flight, or nil, as far as it can be read without the lock.
func (q *Queue) Peek() (*Record, error) {
	v, err := q.Look()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return v.InFlight(), nil
}

// SessionLives reports whether a session that `heartbeat run` started lives in the folder.
func (q *Queue) SessionLives() bool { return flock.HeldIn(q.dir, SessionLock) }

// Held is a queue whose hook lock is held; its methods are the only ones that change the queue's
// state. After Unlock they change nothing and return an error: what was read under the lock may
// no longer be true.
type Held struct {
	*Queue
	unlock func() error // nil once it was called
}

// errReleased means that the caller has released the lock.
var errReleased = errors.New("cannot change the queue: its hook lock was given back")

// Lock takes the hook lock (an flock). It waits until ctx ends.
func (q *Queue) Lock(ctx context.Context) (*Held, error) {
	unlock, err := flock.LockIn(ctx, q.dir, HookLock)
	if err != nil {
		return nil, err
	}
	return &Held{Queue: q, unlock: unlock}, nil
}

// Unlock releases the lock; a second call does nothing.
func (h *Held) Unlock() error {
	unlock := h.unlock
	if h.unlock = nil; unlock == nil {
		return nil
	}
	return unlock()
}

// settle looks, and repairs what it has found. After each repair, Look reaches the same
// decision again. Close the view.
func (h *Held) settle() (*View, error) {
	if h.unlock == nil {
		return nil, errReleased
	}
	v, err := h.Look()
	if err != nil {
		return nil, err
	}
	if err := h.repair(v); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

func (h *Held) repair(v *View) error {
	if v.at.note != "" {
		h.note("%s", v.at.note)
	}
	if v.disturbed != "" {
		if err := h.fileLost(v); err != nil {
			return err
		}
		v.at.changed, v.at.sidecar.Size = true, v.source.size
	}
	if v.at.aside {
		if err := h.quarantine(h.dir, h.lane.Cursor); err != nil {
			return err
		}
	}
	if v.at.moved {
		if err := h.moveCursor(v.source, v.at.cursor); err != nil {
			return err
		}
	}
	if v.sidecarDamaged {
		if err := h.quarantine(h.dir, h.lane.Sidecar); err != nil {
			return err
		}
	}
	if v.at.changed {
		if err := h.writeSidecar(v.at.sidecar); err != nil {
			return err
		}
	}
	if v.at.moved || v.at.aside {
		if err := h.dir.Sync(); err != nil {
			return err
		}
	}
	return h.fitRecord(v)
}

// fileLost files what somebody has taken out of the inbox.
func (h *Held) fileLost(v *View) error {
	d := v.Lost()
	if d == nil {
		return nil
	}
	h.note("%s: at least %d bytes that were queued in it are lost, and were filed as a dead letter", v.disturbed, d.Length)
	d.At = time.Now().UTC()
	return h.file([]Dead{*d})
}

// fitRecord makes the record of the entry in flight fit the repaired inbox: a stale one is
// deleted, a damaged one made again, and what was written behind it in a file that is gone is
// forgotten.
func (h *Held) fitRecord(v *View) error {
	switch f := v.flight; {
	case v.stale:
		v.flight, v.stale = nil, false
		return h.clearRecord()
	case v.recordDamaged:
		return h.repairRecord(v)
	case f != nil && v.disturbed != "" && f.InboxSize > v.source.size:
		f.InboxSize = v.source.size
		return h.writeRecord(f)
	}
	return nil
}

// repairRecord sets a damaged record aside. The entry at the cursor may have been handed over, so
// it counts as offered, and proof is required.
func (h *Held) repairRecord(v *View) error {
	if err := h.quarantine(h.dir, h.lane.Record); err != nil {
		return err
	}
	h.note("the record of the entry in flight was corrupt and set aside; the entry at the cursor counts as offered")
	e, err := h.firstEntry(v.source, v.at.cursor, v.Generation())
	if err != nil || e == nil {
		return err
	}
	f := newFlight(e, v.Generation())
	f.resume(v.Requeued())
	f.DeliveredAt = time.Now().UTC()
	v.flight = f
	return h.writeRecord(f)
}

// evidenceKept is how many damaged files of one name are kept.
const evidenceKept = 8

// quarantine keeps a damaged file as evidence under another name. A file that a power cut emptied
// is not kept.
func (h *Held) quarantine(in *durable.Folder, name string) error {
	info, err := in.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		h.note("%s was empty", name)
		return in.Remove(name)
	}
	aside := name + ".corrupt-"
	to := aside + time.Now().UTC().Format("20060102T150405.000000000Z")
	h.note("%s was corrupt and is kept as %s", name, to)
	if err := in.Rename(name, to); err != nil {
		return err
	}
	return in.Thin(aside, evidenceKept)
}

// extend appends to a file of records. If something other than a file has its name, it is set
// aside; otherwise nothing could be acknowledged or filed any more.
func (h *Held) extend(in *durable.Folder, name string, data []byte) error {
	err := in.Append(name, data)
	if !errors.Is(err, durable.ErrNotRegular) {
		return err
	}
	if err := h.quarantine(in, name); err != nil {
		return err
	}
	return in.Append(name, data)
}

// file appends dead letters durably, except those whose record an interrupted attempt left.
func (h *Held) file(dead []Dead) error {
	filed, err := h.filed(dead)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, ErrTooMuch) {
		err = nil // it is set aside; one that is filed twice is listed twice
	}
	if err != nil {
		return err
	}
	return h.fileBut(filed, dead)
}

// fileBut is file where it is known which are filed already.
func (h *Held) fileBut(filed map[string]bool, dead []Dead) error {
	var all []byte
	for _, d := range dead {
		if filed[d.DeliveryID] {
			continue
		}
		line, err := encode(d)
		if err != nil {
			return err
		}
		all = append(all, line...)
	}
	if len(all) == 0 {
		return nil
	}
	return h.extend(h.dir, DeadFile, all)
}

// moveCursor syncs the inbox, then writes the cursor: what is acknowledged must still be there
// after a power cut, or the cursor would be after the end.
func (h *Held) moveCursor(s *source, to int64) error {
	if s.file != nil {
		if err := h.dir.SyncData(s.file, h.name); err != nil {
			return err
		}
	}
	return h.writeCursor(to)
}

func (h *Held) writeCursor(to int64) error {
	return h.dir.Swap(h.lane.Cursor, strconv.AppendInt(nil, to, 10))
}

// writeSidecar replaces the sidecar. It is synced only when it holds facts that are stored
// nowhere else: after a power cut it is made again if lost or empty, and an old one is right
// about its own offset.
func (h *Held) writeSidecar(m sidecar) error {
	data, err := encode(m)
	switch {
	case err != nil:
		return err
	case m.isIrreplaceable():
		return h.dir.Replace(h.lane.Sidecar, data)
	}
	return h.dir.Put(h.lane.Sidecar, data)
}

// writeRecord makes the record durable.
func (h *Held) writeRecord(f *flight) error {
	data, err := encode(f.Record)
	if err != nil {
		return err
	}
	return h.dir.Replace(h.lane.Record, data)
}

// writeOffer is writeRecord plus heartbeat-rs's flag. When it fails the entry is not handed over:
// what was written is undone, and before (nil: none) is in flight again.
func (h *Held) writeOffer(f, before *flight) error {
	data, err := encode(f.Record)
	if err != nil {
		return err
	}
	if err = h.dir.Swap(h.lane.Record, data); err == nil {
		err = h.dir.Touch(h.lane.Flag)
	}
	if err == nil {
		err = h.dir.Sync()
	}
	if err == nil {
		return nil
	}
	if before == nil {
		_ = h.clearRecord() // else the entry counts as offered, and is offered again
	} else if data, encodeErr := encode(before.Record); encodeErr == nil {
		_ = h.dir.Swap(h.lane.Record, data)
	}
	return err
}

// clearRecord removes the record. The removal needs no sync: if the record comes back after a
// power cut, the cursor or the outbox shows that it is done.
func (h *Held) clearRecord() error {
	err := h.dir.Remove(h.lane.Flag)
	if info, statErr := h.dir.Stat(h.lane.Flag); statErr == nil && info.IsDir() {
		err = h.quarantine(h.dir, h.lane.Flag) // nothing of ours, and no reason to stop
	}
	return errors.Join(h.dir.Remove(h.lane.Record), err)
}
