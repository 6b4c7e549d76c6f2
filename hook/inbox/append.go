package inbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// Letter is a prompt to append. Append always writes it as an envelope on one line.
type Letter struct {
	ID     string // "" for one made up
	Source string // "send" or "AGENT/TRIGGER@LABEL"
	Prompt string // not blank
	// Checked marks the entry as one that is done when a check of its work has passed.
	Checked bool
	// Idempotent makes Append refuse, with ErrDuplicate, an ID that was accepted
	// before: among the last 100,000, or within 7 days.
	Idempotent bool
	// Most makes Append refuse the letter, with ErrFull, if that many entries are
	// queued and not in flight; 0: however many there are, less than 0: in any case. An
	// id that was accepted before is refused as a duplicate all the same.
	Most int
	// Urgent puts it into the urgent lane, whose entries are handed over before the
	// others.
	Urgent bool
}

// Append adds an entry and returns its id. When it returns nil, the entry and its
// folder are on disk. It creates the inbox if there is none, takes no hook lock,
// and is safe against other appenders. After an error other than ErrDuplicate,
// ErrTooLarge, ErrFull or one about the letter itself, it is not known whether the entry was
// queued; appending the same id with Idempotent settles that.
func (q *Queue) Append(ctx context.Context, l Letter) (id string, err error) {
	ids, err := q.AppendBatch(ctx, []Letter{l})
	if err != nil {
		return "", err
	}
	if ids[0] == "" {
		return l.ID, fmt.Errorf("cannot queue the entry %q: %w", l.ID, ErrDuplicate)
	}
	return ids[0], nil
}

// AppendBatch adds several entries in order, with one write and one sync. It
// returns their ids; the id of an entry that was refused as a duplicate is "".
// After an error, none of them is known to be queued.
func (q *Queue) AppendBatch(ctx context.Context, letters []Letter) (ids []string, err error) {
	lines := make([][]byte, len(letters))
	ids = make([]string, len(letters))
	for i, l := range letters {
		if ids[i], lines[i], err = q.seal(l); err != nil {
			return nil, err
		}
	}
	to, err := q.laneFor(letters)
	if err != nil {
		return nil, err
	}
	a, err := to.openAppend(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.q.refuseDuplicates(a, letters, ids, lines); err != nil {
		return nil, err
	}
	data := bytes.Join(lines, nil)
	if len(data) == 0 {
		return ids, nil
	}
	if err := q.refuseOverMost(letters, ids); err != nil {
		return nil, err
	}
	if err := a.write(ctx, data); err != nil {
		return nil, err
	}
	a.q.remember(a, ids, lines)
	return ids, nil
}

// laneFor is the lane to which letters go, all of them.
func (q *Queue) laneFor(letters []Letter) (*lane, error) {
	urgent := len(letters) > 0 && letters[0].Urgent
	for _, l := range letters {
		if l.Urgent != urgent {
			return nil, errors.New("cannot queue urgent entries together with others")
		}
	}
	if urgent && q.single() {
		return nil, fmt.Errorf("cannot queue an urgent entry: %q has no urgent lane", q.place.Inbox)
	}
	return q.laneOf(urgent), nil
}

// refuseOverMost refuses letters for which there is no room. Other appenders wait for
// our lock, so that none is over the bound; who takes no lock can be.
func (q *Queue) refuseOverMost(letters []Letter, ids []string) error {
	for i, l := range letters {
		if l.Most == 0 || ids[i] == "" {
			continue
		}
		queued, err := q.queued(max(0, l.Most-i))
		if err != nil {
			return err
		}
		if l.Most < 0 || queued+i >= l.Most {
			return fmt.Errorf("cannot queue the entry: %w: %d of %d", ErrFull, queued, max(0, l.Most))
		}
	}
	return nil
}

// seal encodes a letter as a line.
func (q *Queue) seal(l Letter) (id string, line []byte, err error) {
	if err := l.check(); err != nil {
		return "", nil, err
	}
	if id = l.ID; id == "" {
		id = newID()
	}
	line, err = form.Encode(form.Envelope{ID: id, Source: l.Source, Checked: l.Checked, Prompt: l.Prompt})
	if err == nil && int64(len(line))-1 > q.maxEntry {
		err = fmt.Errorf("cannot queue the entry: %w (%d bytes as a line, the limit is %d)", ErrTooLarge, len(line)-1, q.maxEntry)
	}
	return id, line, err
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// appending is an inbox that is open and locked for an append.
type appending struct {
	q    *lane
	file *os.File
	size int64
	ino  uint64
	// guard is the inbox, for an append to the urgent lane.
	guard *appending
	// searched is true when the memory of ids covers the inbox up to size; written
	// is how much this append has added.
	searched bool
	written  int64
}

// openTries bounds how often the inbox may be replaced while Append opens it.
const openTries = 16

func (a *appending) close() error {
	err := a.file.Close()
	if a.guard != nil {
		err = errors.Join(err, a.guard.close())
	}
	return err
}

// openAppend opens a lane and locks it against other appenders. For the urgent lane it
// locks the inbox first: whoever appends is alone with the memory of ids, and with the
// bound on what is queued, both of which the lanes share.
func (q *lane) openAppend(ctx context.Context) (*appending, error) {
	if !q.urgent {
		return q.openLocked(ctx)
	}
	guard, err := q.inbox().openLocked(ctx)
	if err != nil {
		return nil, err
	}
	a, err := q.openLocked(ctx)
	if err != nil {
		return nil, errors.Join(err, guard.close())
	}
	a.guard = guard
	return a, nil
}

// openLocked opens the file, locks it against other appenders, and checks that the
// name still refers to it.
func (q *lane) openLocked(ctx context.Context) (*appending, error) {
	for range openTries {
		s, err := q.openSource(os.O_RDWR | os.O_APPEND)
		if err == nil && s.file == nil {
			err = q.dir.Do(durable.Step{Verb: durable.Create, Name: q.name}, func() (err error) {
				s, err = q.openSource(os.O_RDWR | os.O_APPEND | os.O_CREATE)
				return err
			})
		}
		if err != nil {
			return nil, err
		}
		if err := flock.OnFile(ctx, s.file); err != nil {
			s.close()
			return nil, err
		}
		opened, err := s.file.Stat()
		named, nameErr := q.dir.Stat(q.name)
		if err == nil && nameErr == nil && os.SameFile(opened, named) {
			q.keep(s)
			return &appending{q: q, file: s.file, size: opened.Size(), ino: s.ino}, nil
		}
		s.close()
		if nameErr != nil && !errors.Is(nameErr, fs.ErrNotExist) {
			return nil, nameErr
		}
	}
	return nil, fmt.Errorf("cannot append to %q: it is replaced all the time", q.path)
}

// write appends whole lines with one write(2), which no other appender can split,
// and makes them durable. A write that fails leaves nothing behind. An unterminated
// last line first gets its newline; otherwise ours would be joined to it.
func (a *appending) write(ctx context.Context, data []byte) error {
	q := a.q
	unfinished, err := a.unfinished(ctx)
	if err != nil {
		return fmt.Errorf("cannot append to %q: %v", q.path, err)
	}
	if unfinished {
		data = append([]byte{'\n'}, data...)
	}
	err = q.dir.Do(durable.Step{Verb: durable.Write, Name: q.name, Data: data}, func() error {
		return durable.WriteWhole(a.file, data)
	})
	if err != nil {
		return fmt.Errorf("cannot append to %q: %w", q.path, err)
	}
	a.written = int64(len(data))
	if err := q.dir.SyncData(a.file, q.name); err != nil {
		return err
	}
	if a.size == 0 { // new, or made by somebody who may not have synced its name
		return q.dir.Sync()
	}
	return nil
}

// A last line without its newline gets some time: a shell may write a long line in
// pieces, and takes no lock.
const (
	tailQuiet = time.Second     // not grown for so long, its writer has gone
	tailLimit = 5 * time.Second // the longest wait for a writer that never ends a line
	tailPause = 20 * time.Millisecond
)

// unfinished reports whether the last line has lacked its newline for at least a
// second.
func (a *appending) unfinished(ctx context.Context) (bool, error) {
	quiet := a.q.tailQuiet
	began, grown, size := time.Now(), time.Now(), int64(-1)
	for {
		open, err := durable.Unterminated(a.file)
		if err != nil || !open {
			return false, err
		}
		info, err := a.file.Stat()
		if err != nil {
			return false, err
		}
		if info.Size() != size {
			size, grown = info.Size(), time.Now()
		}
		// A modification time in the future tells nothing: then only what we saw
		// counts.
		if time.Since(info.ModTime()) >= quiet || time.Since(grown) >= quiet || time.Since(began) >= tailLimit {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(tailPause):
		}
	}
}

// appendRaw appends a line unchanged.
func (q *lane) appendRaw(raw []byte) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), rawWait)
	defer cancel()
	a, err := q.openAppend(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return a.write(ctx, append(bytes.Clone(raw), '\n'))
}

// rawWait bounds how long a requeued line waits for other appenders.
const rawWait = 10 * time.Second
