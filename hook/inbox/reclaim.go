package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// When Reclaim acts.
const (
	reclaimAfter = 16 << 20 // acknowledged bytes not given back yet
	blockSize    = 4096
	// lateFor is how long a drained inbox that was moved aside is watched for bytes
	// from a writer that had opened it before; longer while such a writer still has
	// it open.
	lateFor = time.Minute
)

// errNoHoles means that the file system cannot punch holes.
var errNoHoles = errors.New("the file system cannot punch holes")

// archive is a drained inbox that was moved aside.
type archive struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // what was acknowledged or copied of it
	At   int64  `json:"at"`   // Unix seconds
}

// Reclaim gives the disk space of acknowledged entries back, once there are 16 MiB
// of them. It punches a hole, which changes no offset. Where that is not possible,
// it moves a drained inbox aside, copies what late writers still write to it, and
// removes it after a minute without any: call Reclaim again as long as Reclaimable
// reports true. A session may live meanwhile. Hooks should not call it: it takes
// too long.
func (h *Held) Reclaim() error {
	for _, l := range h.lanes() {
		if err := l.reclaim(); err != nil {
			return err
		}
	}
	return nil
}

func (h *heldLane) reclaim() error {
	v, err := h.settle()
	if err != nil {
		return err
	}
	defer v.close()
	if v.verdict.meta.Archive != nil {
		return h.watchArchive(v)
	}
	m := v.verdict.meta
	// The window before the cursor stays, or the inbox could not be recognised.
	to := max(0, v.verdict.cursor-window) &^ (blockSize - 1)
	if v.source.file == nil || to-m.Punched < reclaimAfter {
		return nil
	}
	err = h.punch(to)
	if errors.Is(err, errNoHoles) {
		return h.archive(v)
	}
	if err != nil {
		return err
	}
	m.Punched, m.HeadLen, m.Head = to, 0, ""
	return h.writeMeta(m)
}

// Reclaimable reports whether Reclaim may have something to do: space to give back,
// or an inbox that was moved aside and may still be written to. It reads one small
// file and needs no lock.
func (q *Queue) Reclaimable() bool { return slices.ContainsFunc(q.lanes(), (*lane).reclaimable) }

func (q *lane) reclaimable() bool {
	m, _, err := q.readMeta()
	return err == nil && m != nil && (m.Archive != nil || m.Cursor-m.Punched >= reclaimAfter)
}

// punch gives the blocks before an offset back. It needs no sync: if a power cut
// undoes the hole, only space is lost.
func (h *heldLane) punch(to int64) (err error) {
	file, err := h.dir.OpenFile(h.name, os.O_RDWR)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return h.dir.Do(durable.Step{Verb: durable.Write, Name: h.name}, func() error { return punchHole(file, to) })
}

// archive moves a drained inbox aside if nobody has it open for writing. The next
// look finds no inbox and starts a new generation.
func (h *heldLane) archive(v *view) (err error) {
	if v.flight != nil || v.verdict.cursor != v.source.size || durable.WritingOf(v.source.file) == durable.Written {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), rawWait)
	defer cancel()
	if err := flock.OnFile(ctx, v.source.file); err != nil {
		return err
	}
	info, err := v.source.file.Stat()
	if err != nil || info.Size() != v.verdict.cursor {
		return err
	}
	m := v.verdict.meta
	stem, ext, _ := strings.Cut(h.name, ".")
	m.Archive = &archive{
		Name: fmt.Sprintf("%s.%d.%s", stem, m.Generation, ext),
		Size: info.Size(), At: time.Now().Unix(),
	}
	if err := h.writeMeta(m); err != nil {
		return err
	}
	if err := h.dir.Remove(h.kept); err != nil { // it is drained
		return err
	}
	if err := h.dir.Rename(h.name, m.Archive.Name); err != nil {
		return err
	}
	return h.dir.Sync()
}

// watchArchive copies late lines, and removes the archive when it is old enough.
func (h *heldLane) watchArchive(v *view) error {
	m := v.verdict.meta
	a := *m.Archive
	m.Archive = nil
	file, err := h.dir.OpenFile(a.Name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return h.writeMeta(m) // it was not moved, or is gone
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > a.Size {
		if a.Size, err = h.copyLate(file, a, info, m.Generation); err != nil {
			return err
		}
		a.At = time.Now().Unix()
		m.Archive = &a
		return h.writeMeta(m)
	}
	switch age := time.Since(time.Unix(a.At, 0)); {
	case age < 0: // the clock was set back: the minute begins again
		a.At = time.Now().Unix()
		m.Archive = &a
		return h.writeMeta(m)
	case age < lateFor || durable.WritingOf(file) == durable.Written:
		return nil
	}
	if err := h.dir.Remove(a.Name); err != nil {
		return err
	}
	return h.writeMeta(m)
}

// copyLate queues what was written to the archive after it was moved, and returns
// how far it came. A last line without its newline counts once its writer was quiet
// for a minute. A line that is too large is filed at once, because its bytes are
// not kept.
func (h *heldLane) copyLate(file *os.File, a archive, info fs.FileInfo, generation int64) (int64, error) {
	from := a.Size
	l := h.lines(file, from, info.Size(), h.maxEntry, mostInbox)
	for {
		got, err := l.read()
		if err != nil {
			return from, ignoreEOF(err)
		}
		if !got.complete && !quiet(info.ModTime(), lateFor) {
			return from, nil
		}
		if got.tooLarge {
			d, _ := h.deadLine(got, false, generation)
			err = h.file([]DeadEntry{d})
			h.note("a line of %d bytes that came after its inbox had been moved aside was filed as a dead letter: %s", got.length, d.Reason)
		} else if len(bytes.TrimSpace(got.raw)) > 0 {
			err = h.appendRaw(got.raw)
		}
		if err != nil {
			return from, err
		}
		from = got.end
	}
}
