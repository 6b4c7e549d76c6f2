package inbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
)

// The memory of ids (.ids) holds a line for each entry that was appended. It is
// written after the inbox and not synced: a search always reads the inbox from the
// last remembered end on, so an id is in at least one of the two. When the memory is
// missing, it is rebuilt from the inbox.

// How far the memory reaches: an id is remembered as long as one of these limits
// holds.
const (
	idsKept = 100_000
	idsFor  = 7 * 24 * time.Hour
	// idsLimit is the size at which the memory is compacted, once there is a day's
	// worth, or a quarter of idsKept, to drop: rewriting it takes seconds.
	idsLimit = 32 << 20
	idsSlack = 24 * time.Hour
)

// knownID is one line of the memory. Start is where the entry stands in the inbox, End
// the offset up to which the memory holds all ids, or 0, Ino the inbox's inode. A
// line without an id is a mark: with a Start, that the file was done up to there;
// otherwise, that somebody has disturbed the inbox, and those before it are about what
// stood there earlier.
type knownID struct {
	ID    string `json:"id"`
	Start *int64 `json:"start,omitempty"`
	At    int64  `json:"at"` // Unix seconds
	Ino   uint64 `json:"ino"`
	End   int64  `json:"end"`
	// Urgent is true for a line about the urgent lane.
	Urgent bool `json:"urgent,omitempty"`
}

// refuseDuplicates clears the id and line of each idempotent letter whose id was
// accepted before, including earlier in the batch.
func (q *lane) refuseDuplicates(a *appending, letters []Letter, ids []string, lines [][]byte) error {
	accepted := map[string]bool{} // :: id that is asked for → accepted before
	for _, l := range letters {
		if l.Idempotent && l.ID != "" {
			accepted[l.ID] = false
		}
	}
	if len(accepted) == 0 {
		return nil
	}
	if err := q.searchOther(accepted); err != nil {
		return err
	}
	if err := q.searchIDs(a, accepted); err != nil {
		return err
	}
	for i, l := range letters {
		before, asked := accepted[l.ID]
		if !asked {
			continue
		}
		if l.Idempotent && before {
			ids[i], lines[i] = "", nil
		}
		accepted[l.ID] = true
	}
	return nil
}

// searchOther is searchIDs for the lane to which nothing is appended. The lock that
// whoever appends holds keeps its appenders away as well.
func (q *lane) searchOther(accepted map[string]bool) error {
	for _, l := range q.lanes() {
		if l.urgent == q.urgent {
			continue
		}
		s, err := l.openSource(os.O_RDONLY)
		if err != nil {
			return err
		}
		if s.file == nil {
			continue
		}
		err = l.searchIDs(&appending{q: l, file: s.file, size: s.size, ino: s.ino}, accepted)
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// searchIDs marks the ids that were accepted before. It adds the ids that the
// memory lacked.
func (q *lane) searchIDs(a *appending, accepted map[string]bool) error {
	from, err := q.searchMemory(a, accepted)
	if err != nil {
		return err
	}
	l := q.lines(a.file, from, a.size, q.maxEntry, mostInbox)
	l.bare = true
	var found []knownID
	whole := from // the end of the last line that is whole
	for {
		got, err := l.read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read %q: %v", q.path, err)
		}
		if !got.complete {
			break
		}
		whole = got.end
		if got.tooLarge || !bytes.HasPrefix(got.raw, []byte(form.EnvelopeStart)) {
			continue
		}
		id := form.Decode(got.raw, false).ID
		if id == "" {
			continue
		}
		if _, asked := accepted[id]; asked {
			accepted[id] = true
		}
		if found = append(found, knownID{ID: id, Start: new(got.start)}); len(found) == idsBatch {
			if err := q.extendMemory(a, found, got.end); err != nil {
				return err
			}
			found = found[:0]
		}
	}
	if len(found) > 0 {
		err = q.extendMemory(a, found, whole)
	}
	a.searched = err == nil && whole == a.size
	return err
}

// idsBatch bounds how many ids are held while the memory is rebuilt.
const idsBatch = 4096

// searchMemory looks for the ids in the memory, and returns the offset from which
// the inbox must be searched.
func (q *lane) searchMemory(a *appending, accepted map[string]bool) (from int64, err error) {
	if m, _, err := q.readMeta(); err == nil && m != nil && m.Ino == a.ino {
		from = min(m.Punched, a.size)
	}
	file, err := q.dir.OpenFile(idsFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return from, nil
	}
	if errors.Is(err, durable.ErrNotRegular) {
		return from, q.quarantine(idsFile)
	}
	if err != nil {
		return from, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > mostRecords {
		return from, q.quarantine(idsFile) // with millions of ids, starting over is faster
	}
	r := bufio.NewReaderSize(io.LimitReader(file, mostRecords), step)
	for {
		l, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return from, fmt.Errorf("cannot read the memory of ids: %v", err)
		}
		k := splitID(l)
		if id, ok := accepted[string(k.id)]; ok && !id {
			accepted[string(k.id)] = true
		}
		if k.ino == a.ino && k.end <= a.size {
			from = max(from, k.end)
		}
		if errors.Is(err, io.EOF) {
			return from, nil
		}
	}
}

// remember adds the ids of what was appended. A failure does no harm, because the
// inbox after the last remembered end is searched as well. When everything before
// was searched and nobody else has written, the remembered end moves on with all
// ids of the batch; otherwise the next search would add each a second time.
func (q *lane) remember(a *appending, ids []string, lines [][]byte) {
	at, err := a.file.Seek(0, io.SeekCurrent) // appending sets the offset to its end (write(2))
	if err != nil {
		return
	}
	for _, l := range lines {
		at -= int64(len(l))
	}
	var known []knownID
	now := time.Now().Unix()
	for i, id := range ids {
		if id == "" {
			continue
		}
		known = append(known, knownID{ID: id, Start: new(at), At: now, Ino: a.ino})
		at += int64(len(lines[i]))
	}
	known[len(known)-1].End = a.end()
	_ = q.writeIDs(known)
}

// end returns the inbox's size if it consists of what was searched and what was
// written since; otherwise 0.
func (a *appending) end() int64 {
	info, err := a.file.Stat()
	if err != nil || !a.searched || info.Size() != a.size+a.written {
		return 0
	}
	return info.Size()
}

// extendMemory appends ids that were found in the inbox. end is the offset up to which
// the memory holds every id of the inbox.
func (q *lane) extendMemory(a *appending, found []knownID, end int64) error {
	now := time.Now().Unix()
	for i := range found {
		found[i].At, found[i].Ino = now, a.ino
	}
	found[len(found)-1].End = end
	return q.writeIDs(found)
}

func (q *lane) writeIDs(ids []knownID) error {
	var b bytes.Buffer
	for _, k := range ids {
		k.Urgent = q.urgent
		l, err := encodeJSON(k)
		if err != nil {
			return err
		}
		b.Write(l)
	}
	file, err := q.dir.OpenFile(idsFile, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	defer file.Close()
	err = q.dir.Extend(file, idsFile, b.Bytes())
	if err != nil {
		return fmt.Errorf("cannot extend the memory of ids: %w", err)
	}
	if info, err := file.Stat(); err == nil && info.Size() > idsLimit && info.Size() <= mostRecords && beginsOutdated(file) {
		return q.compactMemory(file)
	}
	return nil
}

// beginsOutdated reports whether the oldest id has been outdated for a while.
func beginsOutdated(file *os.File) bool {
	l, err := bufio.NewReaderSize(io.NewSectionReader(file, 0, step), step).ReadSlice('\n')
	var k knownID
	return err != nil || json.Unmarshal(l, &k) != nil || k.outdated(time.Now(), idsFor+idsSlack)
}

// outdated is also true for an id from the future, which a wrong clock made:
// otherwise it would be kept for years.
func (k knownID) outdated(now time.Time, after time.Duration) bool {
	return k.At < now.Add(-after).Unix() || k.At > now.Add(idsSlack).Unix()
}

// compactMemory drops the ids that are both old and not among the last.
func (q *Queue) compactMemory(file *os.File) error {
	total := 0
	count := bufio.NewReaderSize(io.NewSectionReader(file, 0, mostRecords), step)
	for {
		_, err := count.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		total++
	}
	if total <= idsKept+idsKept/4 {
		return nil
	}
	now := time.Now()
	return q.dir.ReplaceFunc(idsFile, true, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, step)
		r := bufio.NewReaderSize(io.NewSectionReader(file, 0, mostRecords), step)
		for n := 1; ; n++ {
			l, err := r.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				return out.Flush()
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
			var k knownID
			if json.Unmarshal(l, &k) != nil || total-n >= idsKept && k.outdated(now, idsFor) {
				continue
			}
			if _, err := out.Write(l); err != nil {
				return err
			}
		}
	})
}

// AcceptedAs returns the prompt of the last entry that was accepted with an id, as
// far as its line is still in the inbox or among the dead letters. It needs no lock.
func (q *Queue) AcceptedAs(id string) (prompt string, found bool, err error) {
	for _, l := range q.lanes() {
		if prompt, found, err = l.acceptedAs(id); found || err != nil {
			return prompt, found, err
		}
	}
	_, err = q.eachDead(&Mark{}, mostRecords, func(_ []byte, d *DeadEntry) bool {
		if d != nil && d.ID == id && d.Raw() != nil {
			prompt, found = form.Decode(d.Raw(), d.StartOffset == 0).Prompt, true
		}
		return true
	})
	return prompt, found, err
}

// acceptedAs returns the prompt of the last entry with an id whose line is still there.
func (q *lane) acceptedAs(id string) (prompt string, found bool, err error) {
	s, err := q.openSource(os.O_RDONLY)
	if err != nil || s.file == nil {
		return "", false, err
	}
	defer s.close()
	l := q.stored(s)
	for {
		got, err := l.read()
		if err != nil {
			return prompt, found, ignoreEOF(err)
		}
		if d := form.Decode(got.raw, got.start == 0); got.complete && d.ID == id {
			prompt, found = d.Prompt, true
		}
	}
}
