package files

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"

	form "heartbeat/queue/line"
)

// window is how many bytes before the cursor, and at the start of the file of lines, are
// remembered in order to recognise it.
const window = 256

// sidecar is .inbox-meta: what the file of lines looked like when the cursor was last written. It
// shows whether that has only grown, or was truncated, rotated, replaced or edited meanwhile. It
// may be one step ahead of the cursor (after a crash between the two writes) but is never wrong
// about its own offset.
type sidecar struct {
	// Ino is the file's inode; 0: there was none. The device is not kept: its number changes
	// with each mount of FUSE, overlayfs, btrfs and NFS.
	Ino uint64 `json:"ino"`
	// Generation names the file: a random number, so that it differs from every earlier one.
	Generation int64  `json:"generation"`
	Cursor     int64  `json:"cursor"`
	Size       int64  `json:"size,omitempty"`     // of the file when this was written
	Tail       string `json:"tail"`               // sha256 of the window before Cursor
	Head       string `json:"head,omitempty"`     // sha256 of the first HeadLen bytes
	HeadLen    int64  `json:"head_len,omitempty"` // 0: unknown
	// First is the entry id of the first line, if that is an envelope with an id within the head:
	// no other file begins with it.
	First string `json:"first,omitempty"`
	// Distinct is true when another file cannot contain the window by chance: the window ends
	// with an envelope that has an id, or holds different lines.
	Distinct  bool   `json:"distinct,omitempty"`
	Last      string `json:"last,omitempty"`        // entry id of the line before Cursor
	LastHasID bool   `json:"last_has_id,omitempty"` // that line is an envelope with an id
	// Requeued is the entry at the cursor, if it was handed over before.
	Requeued *History `json:"requeued,omitempty"`

	// Of heartbeat's earlier design: what the queue was seen to ask a person; the offset up to
	// which the blocks were given back; a drained file that was moved aside.
	Asks    string          `json:"asks,omitempty"`
	Punched int64           `json:"punched,omitempty"`
	Archive json.RawMessage `json:"archive,omitempty"`
}

// History keeps an entry's history while the entry is queued again.
type History struct {
	DeliveryID string `json:"delivery_id"`
	EntryID    string `json:"entry_id"`
	Tries
	Proving
	// Moved is set when the line must be appended again because its file is gone; From is the
	// size of the file of lines before that.
	Moved bool  `json:"moved,omitempty"`
	From  int64 `json:"from,omitempty"`
}

// movedTo returns q for a file that holds its line elsewhere, at or after an offset: the delivery
// id, which depends on offset and generation, no longer matches.
func (q *History) movedTo(from int64) *History {
	if q == nil {
		return nil
	}
	moved := *q
	moved.Moved, moved.From = true, from
	return &moved
}

// Is reports whether q is about the entry at an offset, with this delivery id and entry id. It is
// not where q is nil.
func (q *History) Is(start int64, delivery, entry string) bool {
	if q == nil {
		return false
	}
	return q.DeliveryID == delivery || q.Moved && q.EntryID == entry && start >= q.From
}

// isIrreplaceable reports whether the sidecar holds facts that are stored nowhere else.
func (m *sidecar) isIrreplaceable() bool {
	return m.Requeued != nil || len(m.Archive) > 0 || m.Asks != ""
}

// isUnknown reports whether the sidecar holds nothing but a question: there was none.
func (m *sidecar) isUnknown() bool { return m.Ino == 0 && m.Asks != "" }

// readSidecar returns nil when the sidecar is missing or damaged.
func (r *Reader) readSidecar() (m *sidecar, damaged bool, err error) {
	return readOwn(r.dir, r.lane.Sidecar, 64<<10, parseSidecar)
}

// parseSidecar returns nil for data that cannot be a sidecar: it is then made again.
func parseSidecar(data []byte) *sidecar {
	var m sidecar
	if json.Unmarshal(data, &m) != nil || m.Cursor < 0 || m.Generation <= 0 || len(m.Tail) != 2*sha256.Size ||
		m.HeadLen < 0 || m.HeadLen > window || m.Punched < 0 {
		return nil
	}
	if q := m.Requeued; q != nil && (q.Attempt < 0 || q.Repeats < 0 || q.From < 0 || !q.isValid()) {
		m.Requeued = nil
	}
	return &m
}

// note adds to m what is known of the file of lines up to a cursor. last is the line before the
// cursor (nil: unknown).
func (s *source) note(m sidecar, cursor int64, last []byte) sidecar {
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

// firstID is the entry id of the first line of a head, if that is whole and an envelope with an
// id; "" else.
func firstID(head []byte) string {
	line, _, whole := bytes.Cut(head, []byte{'\n'})
	if !whole || form.Decode(line, false).ID == "" {
		return ""
	}
	return form.Sum(line)
}

// newGeneration names a file of lines that was not seen before.
func newGeneration() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:])                                 // never fails (crypto/rand)
	return int64(binary.LittleEndian.Uint64(b[:])>>11) + 1 // exact in other languages' JSON, too
}

// cursor is the content of the cursor file.
type cursor struct {
	value            int64
	missing, damaged bool
}

func (r *Reader) readCursor() (cursor, error) {
	at, damaged, err := readOwn(r.dir, r.lane.Cursor, 4<<10, parseCursor)
	if at == nil {
		return cursor{missing: !damaged && err == nil, damaged: damaged}, err
	}
	return cursor{value: *at}, nil
}

// parseCursor reads a decimal number, perhaps between white space; nil for anything else.
func parseCursor(data []byte) *int64 {
	s := strings.TrimSpace(string(data))
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		return nil
	}
	return &n
}
