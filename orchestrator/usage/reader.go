package usage

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
)

// Limits on what is read of transcripts, which agents can write.
const (
	maxLine   = 16 << 20    // longer lines are ignored
	maxFiles  = 10_000      // files, those that were removed again included
	maxLook   = 2 * maxLine // bytes that one Look reads
	maxBehind = 256 << 20   // more unread bytes than this are skipped
	// maxLooks is how often LookAtAll calls Look.
	maxLooks = 64
	// baseWithin is how far before an offset Base searches for the cost of a
	// conversation.
	baseWithin = 4 << 20
)

// listEvery is how often the folder of subagents is listed.
const listEvery = time.Second

// Reader reads the transcripts of one session as they grow: the client's own and those
// of its subagents. It opens a file only if it has grown.
type Reader struct {
	// Began is when a session began that continues a conversation; zero: it started a
	// new one.
	Began time.Time

	files  map[string]*place
	listed time.Time
	left   int64 // bytes that this look may still read
	full   bool  // there are more than maxFiles, and that was counted as missed
}

// place is how far a file was read, and its size then.
type place struct {
	at, size int64
	noted    bool // everything after at is the session's, whatever time the lines have
	file     fs.FileInfo
	newest   time.Time // the newest time of a line that was read
	after    time.Time // lines up to this time were read in a file that this one replaced
	lost     bool      // it cannot be read, and was counted as missed
}

// From starts reading a transcript at an offset. Everything after the offset is the
// session's, even if a clock is set back meanwhile. In all other files (those of
// subagents, and the copy that a client makes of a conversation it continues) lines
// before Began do not count.
func (r *Reader) From(path string, offset int64) {
	p := r.place(path)
	p.at, p.noted = offset, offset > 0
}

func (r *Reader) place(path string) *place {
	if r.files == nil {
		r.files = map[string]*place{}
	}
	if r.files[path] == nil {
		r.files[path] = &place{}
	}
	return r.files[path]
}

// Base returns what a conversation had cost, and how many tokens it had used, up to an
// offset of its transcript, as the client last wrote it there; zero if it wrote nothing.
// ok is false if that cannot be read, or may be further back than Base reads.
func Base(path string, offset int64) (total float64, whole client.Tokens, ok bool) {
	from := max(0, offset-baseWithin)
	ok = from == 0
	_, err := lines(path, from, offset, func(line []byte, _ int64) {
		if s, tells := client.Claude.Transcript.Spending(line); tells && s.Cost > 0 {
			total, whole, ok = s.Cost, s.Whole, true
		}
	})
	return total, whole, ok && err == nil
}

// Look counts what was written since the last call to a transcript and to those of its
// subagents, up to the limit of one call. An error means that a file could not be read
// this time; the next call tries it again. What can never be read, or is skipped because
// there is too much of it, counts as unseen.
func (r *Reader) Look(transcript string, now time.Time, counter *Counter) error {
	if transcript == "" {
		return nil
	}
	r.left = maxLook
	err := r.read(transcript, counter, "")
	if now.Sub(r.listed) < listEvery {
		return err
	}
	r.listed = now
	folder := client.Claude.Transcript.Subagents(transcript)
	opened, openErr := durable.Open(folder)
	if openErr != nil {
		return err // there are none
	}
	entries, listErr := opened.Entries()
	err = errors.Join(err, listErr, opened.Close())
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".jsonl"):
		case r.files[path] != nil || len(r.files) < maxFiles:
			err = errors.Join(err, r.read(path, counter, e.Name()))
		case !r.full:
			r.full = true
			counter.Miss()
		}
	}
	return err
}

// LookAgain makes the next Look list the folder of subagents.
func (r *Reader) LookAgain() { r.listed = time.Time{} }

// LookAtAll calls Look until everything is read.
func (r *Reader) LookAtAll(transcript string, now time.Time, counter *Counter) error {
	for range maxLooks {
		r.LookAgain()
		if err := r.Look(transcript, now, counter); err != nil || r.left > 0 {
			return err
		}
	}
	return nil
}

func (r *Reader) read(path string, counter *Counter, subagent string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // it does not exist yet, or no longer
	}
	p, size := r.place(path), info.Size()
	switch {
	case !info.Mode().IsRegular():
		p.lose(counter)
		return nil
	case p.file != nil && !os.SameFile(p.file, info), size < p.at:
		// It was removed and created again, perhaps with the same inode, or truncated:
		// lines that are not newer are counted already.
		counter.Miss()
		*p = place{after: p.newest, newest: p.newest}
	}
	p.file = info
	switch {
	case size == p.at, size == p.size: // the rest of the last line is not there yet
		return nil
	case r.left <= 0:
		return nil // left to the next look
	case size-p.at > maxBehind:
		p.at = size - maxBehind/2 // in the middle of a line, which is then ignored
		counter.Miss()
	}
	return r.readOn(path, p, size, counter, subagent)
}

// readOn reads as much of the new part as the look may still read.
func (r *Reader) readOn(path string, p *place, size int64, counter *Counter, subagent string) error {
	to := min(size, p.at+r.left)
	begin := p.at
	tail, err := lines(path, p.at, to, func(line []byte, length int64) {
		p.at += length
		if s, tells := client.Claude.Transcript.Spending(line); tells && p.counts(s.At, r.Began) {
			counter.Take(s, subagent)
		}
	})
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, fs.ErrPermission) {
		p.lose(counter)
		return nil
	}
	if err != nil {
		return err
	}
	if r.left -= p.at + tail - begin; tail > maxLine {
		p.at += tail // too long to be a record
	}
	if to == size {
		p.size = size
	} else {
		r.left = 0
	}
	return nil
}

// counts reports whether a line with a time belongs to the session and was not read
// before.
func (p *place) counts(at, began time.Time) bool {
	if at.IsZero() {
		return true
	}
	if !at.After(p.after) {
		return false
	}
	if at.After(p.newest) {
		p.newest = at
	}
	return p.noted || !at.Before(began)
}

// Gone reports whether a transcript that was read no longer exists.
func (r *Reader) Gone(path string) bool {
	p := r.files[path]
	if p == nil || p.file == nil {
		return false
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// lose counts, once, that a file cannot be read.
func (p *place) lose(counter *Counter) {
	if !p.lost {
		counter.Miss()
	}
	p.lost = true
}

// lines calls take for each whole line of a file between two offsets, with the length
// of the line in bytes; a line that is too long is passed as nil. tail is how many bytes
// follow the last whole line.
func lines(path string, from, to int64, take func(line []byte, length int64)) (tail int64, err error) {
	file, err := durable.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), 64<<10)
	for {
		line, length, err := durable.Line(in, maxLine)
		if errors.Is(err, io.EOF) {
			return length, nil
		}
		if err != nil {
			return 0, err
		}
		take(line, length)
	}
}
