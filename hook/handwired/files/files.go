// Package files is the queue of the hand-wired form: heartbeat-rs's files with heartbeat-rs's
// meaning, and our proofs. One file of lines that anybody may append to (the inbox), one cursor,
// one record of the entry in flight, one lock, dead letters, an outbox. At least once, in order.
//
// Everything before the cursor is done; at most one entry is in flight. Each step of an entry's
// life is durable before the next begins: queued, offered (recorded in .in-flight, then handed
// over), acknowledged (its outbox record, then the cursor). README.md says what each file holds
// and where the queue goes on when somebody else has changed them.
//
// A Reader reads one lane of such a folder and changes nothing. It also reads the urgent lane
// and the additions of heartbeat's earlier design, for those who move a queue elsewhere. A Queue
// is a Reader with locks; what changes the queue's state is a method of Held, which Queue.Lock
// returns.
//
// The package decides nothing about sessions. It trusts no byte of the folder: no link is
// followed out of it and every read is bounded, because an agent may write there.
//
// # What is synced
//
// The outbox before the cursor (it makes the acknowledgement durable), the cursor's content (one
// that a power cut empties tells nothing), the inbox before record and cursor (neither may
// outlive the line), the record's content and name (an entry must not be given again once a tool
// ran). Not synced: the name of the cursor (the old one and the outbox say the same), the removal
// of the record (one that comes back is told by the cursor), the sidecar (an old one is right
// about its own offset) unless it holds what stands nowhere else. A failed sync is not tried
// again: the call fails, and the next one starts from what is on disk.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/durable"
)

// Lane names the files of one queue in a folder.
type Lane struct {
	Lines   string // the file of lines; "": the name that Place.Inbox has
	Cursor  string // how many bytes of it are done, decimal
	Sidecar string // what it looked like when the cursor was last written
	Record  string // the entry in flight
	Flag    string // heartbeat-rs's mark that this was handed over; "": there is none
	// Urgent lanes are those of heartbeat's earlier design: their delivery ids have a prefix, and
	// outbox records and dead letters say which lane they are of.
	Urgent bool
}

// The lanes. heartbeat-rs and the hand-wired form know the inbox alone.
var (
	Inbox  = Lane{Cursor: ".inbox-offset", Sidecar: ".inbox-meta", Record: ".in-flight", Flag: ".responded"}
	Urgent = Lane{Lines: "urgent.jsonl", Cursor: ".urgent-offset", Sidecar: ".urgent-meta", Record: ".urgent-in-flight", Urgent: true}
)

// The files that lanes share.
const (
	DeadFile    = ".dead-letter.jsonl"
	OutboxFile  = "outbox.jsonl"
	OlderOutbox = "outbox.1.jsonl" // the one before, rotated at maxOutbox
	IDsFile     = ".ids"           // the ids that heartbeat's send has appended; only read
	HookLock    = ".hook-lock"     // who changes the queue's state holds it
	SessionLock = ".session-lock"  // the shim of a session that `heartbeat run` started holds it
)

// Place says where a queue lives.
type Place struct {
	// Inbox is the absolute path of the file of lines. The files whose names begin with a dot
	// stand in its folder.
	Inbox string
	// Home is the absolute path of the outbox's folder; "": the inbox's.
	Home string
	// Dir is the agent's directory: neither it nor a folder below it may be a link. "": the
	// folders' paths are trusted.
	Dir string
	// MaxEntry is the largest line, in bytes, that is an entry; 0: 1 MiB.
	MaxEntry int64
}

const defaultMaxEntry = 1 << 20

// Outcomes that callers act on.
var (
	// ErrEmpty means that no complete line is queued.
	ErrEmpty = errors.New("nothing is queued")
	// ErrNeedsOperator means that the queue cannot go on without the risk of losing or repeating
	// entries: a person has to say where (Reader.ByHand).
	ErrNeedsOperator = errors.New("the queue needs a person")
	// ErrInFlight means that another entry is in flight.
	ErrInFlight = errors.New("an entry is in flight")
	// ErrNothingInFlight means that no entry is in flight.
	ErrNothingInFlight = errors.New("no entry is in flight")
	// ErrRunHasIt means that the work on the entry in flight is checked, or waits for a person's
	// answer: `heartbeat run` of an earlier version has begun with it.
	ErrRunHasIt = errors.New("its work is checked: only heartbeat run can finish it")
	// ErrTooMuch means that a file is larger than what is read of it at once.
	ErrTooMuch = errors.New("the file holds more than is read of it")
)

// Reader is an opened lane. It needs no lock and changes nothing. Only one goroutine may use it
// at a time.
type Reader struct {
	lane Lane
	path string // of the lines, as it is shown
	name string // of the lines in dir
	dir  *durable.Folder
	home *durable.Folder // dir when they are the same
	// maxEntry bounds a line that is an entry.
	maxEntry int64
	// Aside are the delivery ids of entries that heartbeat's earlier design has set aside: the
	// cursor has passed them, and they have no end yet.
	Aside map[string]bool
}

// OpenReader opens a lane of a place. It never blocks, whatever kind of file is at the paths. The
// folders must exist, the file of lines need not. If that is a link it is resolved, and refused
// when it leads into another folder: the files beside it would not be found there.
func OpenReader(p Place, l Lane) (*Reader, error) {
	if !filepath.IsAbs(p.Inbox) {
		return nil, fmt.Errorf("cannot open inbox %q: the path must be absolute", p.Inbox)
	}
	r := &Reader{lane: l, path: p.Inbox, name: filepath.Base(p.Inbox), maxEntry: p.MaxEntry}
	if l.Lines != "" {
		r.path, r.name = filepath.Join(filepath.Dir(p.Inbox), l.Lines), l.Lines
	}
	if r.maxEntry <= 0 {
		r.maxEntry = defaultMaxEntry
	}
	var err error
	if r.dir, err = durable.OpenBelow(p.Dir, filepath.Dir(p.Inbox)); err != nil {
		return nil, err
	}
	r.home = r.dir
	if p.Home != "" && filepath.Clean(p.Home) != filepath.Dir(p.Inbox) {
		if r.home, err = durable.OpenBelow(p.Dir, p.Home); err != nil {
			return nil, errors.Join(err, r.dir.Close())
		}
	}
	if err := r.resolve(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// resolve follows a link from the file of lines to a file in the same folder.
func (r *Reader) resolve() error {
	info, err := r.dir.Stat(r.name)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil // a missing one is made
	}
	target, err := filepath.EvalSymlinks(r.path)
	if err != nil {
		return fmt.Errorf("cannot open inbox %q: %v", r.path, err)
	}
	folder, err := os.Lstat(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("cannot open inbox %q: %v", r.path, err)
	}
	if own, err := r.dir.Stat("."); err != nil || !os.SameFile(own, folder) {
		return fmt.Errorf("cannot open inbox %q: it is a link into another folder (%q)", r.path, target)
	}
	r.name = filepath.Base(target)
	return nil
}

// Close releases what OpenReader took.
func (r *Reader) Close() error {
	err := r.dir.Close()
	if r.home != r.dir {
		err = errors.Join(err, r.home.Close())
	}
	return err
}

// ByHand is what a person does about ErrNeedsOperator.
func (r *Reader) ByHand() string {
	return fmt.Sprintf("write the byte offset of the first line that is not done into %q (0 repeats all of them), and remove %q",
		r.dir.Path()+"/"+r.lane.Cursor, r.dir.Path()+"/"+r.lane.Sidecar)
}

// readOwn reads a file that only the queue writes: nil when it is missing. damaged means that
// what is there is too large, no regular file, or nothing that parse knows.
func readOwn[T any](dir *durable.Folder, name string, most int64, parse func([]byte) *T) (v *T, damaged bool, err error) {
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

// isQuiet reports whether a file has not changed for a while, as far as its modification time
// tells. A time in the future comes from another clock and tells nothing.
func isQuiet(modified time.Time, while time.Duration) bool {
	age := time.Since(modified)
	return age < 0 || age >= while
}
