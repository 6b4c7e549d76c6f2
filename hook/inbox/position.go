package inbox

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
)

// window is how many bytes before the cursor, and at the inbox's start, are
// remembered in order to recognise the file.
const window = 256

// meta is .inbox-meta: what the inbox looked like when the cursor was last written.
// It shows whether the file has only grown, or was truncated, rotated, replaced or
// edited meanwhile. It may be one step ahead of the cursor (after a crash between
// the two writes) but is never wrong about its own offset.
type meta struct {
	// Ino is the inbox's inode; 0: there was no inbox. The device is not stored:
	// its number changes with each mount of FUSE, overlayfs, btrfs and NFS.
	Ino        uint64 `json:"ino"`
	Generation int64  `json:"generation"`
	Cursor     int64  `json:"cursor"`
	Size       int64  `json:"size,omitempty"`     // of the inbox when this was written
	Tail       string `json:"tail"`               // sha256 of the window before Cursor
	Head       string `json:"head,omitempty"`     // sha256 of the first HeadLen bytes
	HeadLen    int64  `json:"head_len,omitempty"` // 0: unknown
	// First is the entry id of the inbox's first line, if that is an envelope with an
	// id within the head: no other inbox begins with it.
	First string `json:"first,omitempty"`
	// Distinct is true when another file cannot contain the window by chance: the
	// window ends with an envelope that has an id, or holds different lines.
	Distinct bool   `json:"distinct,omitempty"`
	Last     string `json:"last,omitempty"` // entry id of the line before Cursor
	// LastHasID is true when that line is an envelope with an id.
	LastHasID bool `json:"last_has_id,omitempty"`
	// Requeued is the entry at the cursor, if it was handed over before.
	Requeued *requeued `json:"requeued,omitempty"`
	// Punched is the offset up to which the inbox's blocks were given back.
	Punched int64 `json:"punched,omitempty"`
	// Archive is a drained inbox that was moved aside and may still get late bytes
	// from a writer that had it open.
	Archive *archive `json:"archive,omitempty"`
	// Asks is what the queue asks a person, once it was seen to ask; "" else.
	Asks string `json:"asks,omitempty"`
}

// unknown reports whether the sidecar holds nothing but a question: there was none.
func (m *meta) unknown() bool { return m.Ino == 0 && m.Asks != "" }

// requeued keeps an entry's history while the entry is queued again.
type requeued struct {
	DeliveryID string `json:"delivery_id"`
	EntryID    string `json:"entry_id"`
	Tries
	// Proving is what its checks have found so far, but for what a session claims.
	Proving
	// Moved is set when the line must be appended again because its inbox is gone;
	// From is the inbox's size before that.
	Moved bool  `json:"moved,omitempty"`
	From  int64 `json:"from,omitempty"`
}

// movedTo returns r for an inbox that holds its line elsewhere, at or after an
// offset: the delivery id, which depends on offset and generation, no longer
// matches.
func (r *requeued) movedTo(from int64) *requeued {
	if r == nil {
		return nil
	}
	moved := *r
	moved.Moved, moved.From = true, from
	return &moved
}

// irreplaceable reports whether the sidecar holds facts that are stored nowhere
// else.
func (m *meta) irreplaceable() bool { return m.Requeued != nil || m.Archive != nil || m.Asks != "" }

func (r *requeued) is(start int64, delivery, entry string) bool {
	if r == nil {
		return false
	}
	return r.DeliveryID == delivery || r.Moved && r.EntryID == entry && start >= r.From
}

// source is the opened inbox; a nil file means that there is no inbox.
type source struct {
	file     *os.File
	size     int64
	ino      uint64
	modified time.Time
	info     fs.FileInfo
}

func (q *lane) openSource(flag int) (*source, error) { return q.openNamed(q.name, flag) }

func (q *lane) openNamed(name string, flag int) (*source, error) {
	file, err := q.dir.OpenFile(name, flag)
	if errors.Is(err, fs.ErrNotExist) {
		return &source{}, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read %q: %v", q.path, err)
	}
	s := &source{file: file, size: info.Size(), modified: info.ModTime(), info: info}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ino = st.Ino
	}
	return s, nil
}

// now returns the source with the size that it has by now.
func (s *source) now() *source {
	grown := *s
	if s.file != nil {
		if info, err := s.file.Stat(); err == nil {
			grown.size = info.Size()
		}
	}
	return &grown
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// bytes returns [from, to) of the inbox; the caller bounds it.
func (s *source) bytes(from, to int64) ([]byte, error) {
	if from < 0 || to < from || to > s.size {
		return nil, io.ErrUnexpectedEOF
	}
	data := make([]byte, to-from)
	if len(data) == 0 {
		return data, nil
	}
	n, err := s.file.ReadAt(data, from)
	if n == len(data) {
		return data, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // it was truncated while we looked
	}
	return nil, err
}

// sum hashes [from, to); "" when it cannot be read.
func (s *source) sum(from, to int64) string {
	data, err := s.bytes(from, to)
	if err != nil {
		return ""
	}
	return sumOf(data)
}

// sumOf hashes bytes; "" when they are not known.
func sumOf(data []byte) string {
	if data == nil {
		return ""
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// firstID is the entry id of the first line of a head, if that is whole and an
// envelope with an id; "" else.
func firstID(head []byte) string {
	line, _, whole := bytes.Cut(head, []byte{'\n'})
	if !whole || form.Decode(line, false).ID == "" {
		return ""
	}
	return form.Sum(line)
}

// startsLine reports whether a line begins at offset.
func (s *source) startsLine(offset int64) bool {
	if offset == 0 {
		return true
	}
	b, err := s.bytes(offset-1, offset)
	return err == nil && b[0] == '\n'
}

// note adds to m what is known of the inbox up to a cursor. last is the line before
// the cursor (nil: unknown).
func (s *source) note(m meta, cursor int64, last []byte) meta {
	m.Ino, m.Cursor, m.Size = s.ino, cursor, s.size
	from := max(0, cursor-window)
	m.Tail = s.sum(from, cursor)
	if m.HeadLen < window && m.Punched == 0 {
		m.HeadLen = min(window, cursor)
		head, _ := s.bytes(0, m.HeadLen)
		m.Head, m.First = sumOf(head), firstID(head)
	}
	m.Last, m.LastHasID = "", false
	if last != nil {
		m.Last, m.LastHasID = form.Sum(last), form.Decode(last, false).ID != ""
	}
	m.Distinct = m.LastHasID || s.differs(from, cursor)
	return m
}

// differs reports whether [from, to) contains two different whole lines.
func (s *source) differs(from, to int64) bool {
	data, err := s.bytes(from, to)
	if err != nil {
		return false
	}
	if from > 0 { // the first line may be cut
		_, data, _ = bytes.Cut(data, []byte{'\n'})
	}
	var one []byte
	for l := range bytes.Lines(data) {
		l = bytes.TrimSpace(l)
		if len(l) == 0 {
			continue
		}
		if one != nil && !bytes.Equal(one, l) {
			return true
		}
		one = l
	}
	return false
}

// readMeta returns nil when the sidecar is missing or corrupt.
func (q *lane) readMeta() (m *meta, corrupt bool, err error) {
	return readOwn(q.dir, q.meta, 64<<10, parseMeta)
}

// readOwn reads a file that only the queue writes: nil when it is missing. corrupt
// means that what is there is too large, no regular file, or nothing that parse
// knows.
func readOwn[T any](dir *durable.Folder, name string, most int64, parse func([]byte) *T) (v *T, corrupt bool, err error) {
	data, err := dir.Read(name, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case errors.Is(err, durable.ErrTooLarge), errors.Is(err, durable.ErrNotRegular):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	v = parse(data)
	return v, v == nil, nil
}

// parseMeta returns nil for data that cannot be a sidecar: it is then made again.
func parseMeta(data []byte) *meta {
	var m meta
	if json.Unmarshal(data, &m) != nil || m.Cursor < 0 || m.Generation <= 0 || len(m.Tail) != 2*sha256.Size ||
		m.HeadLen < 0 || m.HeadLen > window || m.Punched < 0 {
		return nil
	}
	if r := m.Requeued; r != nil && (r.Attempt < 0 || r.Repeats < 0 || r.From < 0 || !r.Proving.valid()) {
		m.Requeued = nil
	}
	return &m
}

// cursorState is the content of the cursor file.
type cursorState struct {
	value   int64
	missing bool
	corrupt bool
}

func (q *lane) readCursor() (cursorState, error) {
	at, corrupt, err := readOwn(q.dir, q.cursor, 4<<10, parseCursor)
	if at == nil {
		return cursorState{missing: !corrupt && err == nil, corrupt: corrupt}, err
	}
	return cursorState{value: *at}, nil
}

// parseCursor reads a decimal number, surrounded by optional white space; nil for
// anything else.
func parseCursor(data []byte) *int64 {
	s := strings.TrimSpace(string(data))
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		return nil
	}
	return &n
}

// newGeneration names an inbox file that was not seen before. It is random, so that
// it differs from every earlier one even when the sidecar was lost and the clock
// was set.
func newGeneration() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                                 // never fails (crypto/rand)
	return int64(binary.LittleEndian.Uint64(b[:])>>11) + 1 // exact in other languages' JSON, too
}

// quiet reports whether a file has not changed for a while, as far as its
// modification time tells. A time in the future comes from another clock and tells
// nothing.
func quiet(modified time.Time, while time.Duration) bool {
	age := time.Since(modified)
	return age < 0 || age >= while
}
