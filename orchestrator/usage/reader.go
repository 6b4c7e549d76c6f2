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

// What is read of transcripts, which agents can write: a longer line tells nothing,
// no more files of subagents are looked at, one look reads no more in all, and what
// is further behind is passed over.
const (
	maxLine   = 16 << 20
	maxFiles  = 10_000
	maxLook   = 2 * maxLine
	maxBehind = 256 << 20
	// maxLooks is how many looks are taken at what a session has left.
	maxLooks = 64
	// baseWithin is how far before its present end a conversation that is resumed
	// says what it has cost.
	baseWithin = 4 << 20
)

// listEvery is how often new subagents are looked for.
const listEvery = time.Second

// Reader follows the transcripts of one session: the client's own, and those of its
// subagents. It opens no file that has not grown.
type Reader struct {
	// Began is when a session began that goes on with a conversation; zero: it has
	// begun its own.
	Began time.Time

	files  map[string]*place
	listed time.Time
	left   int64 // of what one look may read
}

// place is how far a file was read, and its size then.
type place struct {
	at, size int64
	noted    bool // what is behind at is the session's, whatever the lines say
	file     fs.FileInfo
	newest   time.Time // of the lines that were read
	after    time.Time // what is not newer was read, in a file that this one has replaced
	lost     bool      // it could not be read, and was counted as that
}

// From has a transcript be read from an offset on: all that is behind it is the
// session's, as a clock may be set back meanwhile. Of all others, subagents' and a copy
// that a client begins of a conversation which it goes on with, nothing counts that was
// before Began.
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

// Base returns what a client says a conversation had cost, and taken, that goes on
// behind an offset of its transcript: what it has written at its end, or nothing. It is false
// where that may stand further before, or cannot be read.
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

// Look gives counter what has been written since the last look into a transcript and
// those of its subagents, as far as one look goes. The error is about files that could
// not be read this time: they are tried again. What cannot be read at all, or is too
// far behind, counts as unseen.
func (r *Reader) Look(transcript string, now time.Time, counter *Counter) error {
	if transcript == "" {
		return nil
	}
	r.left = maxLook
	err := r.read(transcript, counter, false)
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
	for i, e := range entries {
		if i < maxFiles && e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".jsonl") {
			err = errors.Join(err, r.read(filepath.Join(folder, e.Name()), counter, true))
		}
	}
	return err
}

// LookAgain has the next Look list subagents, too.
func (r *Reader) LookAgain() { r.listed = time.Time{} }

// LookAtAll looks until nothing is left to be read that one look had no room for.
func (r *Reader) LookAtAll(transcript string, now time.Time, counter *Counter) error {
	for range maxLooks {
		r.LookAgain()
		if err := r.Look(transcript, now, counter); err != nil || r.left > 0 {
			return err
		}
	}
	return nil
}

func (r *Reader) read(path string, counter *Counter, aside bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // it is not there yet, or not any more
	}
	p, size := r.place(path), info.Size()
	switch {
	case !info.Mode().IsRegular():
		p.lose(counter)
		return nil
	case p.file != nil && !os.SameFile(p.file, info), size < p.at:
		// It was removed and begun again, perhaps with the same inode, or cut: what is
		// not newer was counted.
		counter.Miss()
		*p = place{after: p.newest, newest: p.newest}
	}
	p.file = info
	switch {
	case size == p.at, size == p.size: // the rest of a line is still to come
		return nil
	case r.left <= 0:
		return nil // the next look has room
	case size-p.at > maxBehind:
		p.at = size - maxBehind/2 // amid a line, which is no record then
		counter.Miss()
	}
	return r.readOn(path, p, size, counter, aside)
}

// readOn reads as much of what is new as the look has left.
func (r *Reader) readOn(path string, p *place, size int64, counter *Counter, aside bool) error {
	to := min(size, p.at+r.left)
	begin := p.at
	tail, err := lines(path, p.at, to, func(line []byte, length int64) {
		p.at += length
		if s, tells := client.Claude.Transcript.Spending(line); tells && p.counts(s.At, r.Began) {
			counter.Take(s, aside)
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
		p.at += tail // no record, however it ends
	}
	if to == size {
		p.size = size
	} else {
		r.left = 0
	}
	return nil
}

// counts reports whether a line of a time is the session's, and was not read before.
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

// Gone reports whether a transcript is not there any more that was read.
func (r *Reader) Gone(path string) bool {
	p := r.files[path]
	if p == nil || p.file == nil {
		return false
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// lose counts a file that cannot be read, once.
func (p *place) lose(counter *Counter) {
	if !p.lost {
		counter.Miss()
	}
	p.lost = true
}

// lines calls take for each whole line of a file between two offsets, and for how
// many bytes it takes: a line that is too long is nil. tail is how many bytes follow
// the last one.
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
