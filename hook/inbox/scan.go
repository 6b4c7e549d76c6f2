package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	form "heartbeat/queue/line"
)

// step is how much of the inbox is read at a time.
const step = 64 << 10

// Limits, in bytes, on how much of a file is read at once. An agent can make its
// files any size at no cost: a sparse one of 4 TB, for example.
const (
	// mostInbox bounds one read of the inbox: a million prompts of a kilobyte.
	mostInbox = 1 << 30
	// mostFind bounds the search for the last acknowledged line.
	mostFind = 64 << 20
	// mostRecords bounds one read of dead letters, replies or ids.
	mostRecords = 256 << 20
)

// ErrTooMuch means that a file is larger than what is read of it at once.
var ErrTooMuch = errors.New("the file holds more than is read of it")

// line is a stretch of the inbox up to and including a newline. A run of empty
// lines may be returned as one line.
type line struct {
	start, end int64
	raw        []byte // without the newline; valid until the next line is read
	tooLarge   bool   // raw is not there
	complete   bool   // it ends with a newline
	length     int64  // of the line without its newline
	sum        string // entry id of a line that is too large
}

// lines reads an inbox forward with bounded memory: a line over max is hashed, not
// kept.
type lines struct {
	r    io.ReaderAt
	next int64 // offset of the first byte not returned yet
	size int64 // where reading ends, whatever is appended meanwhile
	max  int64

	buf    []byte // read and not returned yet: buf[from:]
	from   int
	offset int64 // of the first byte not read yet
	keep   []byte

	ctx  context.Context // of who asks
	left int64           // how much may still be read
	bare bool            // lines over max are passed over, not hashed
}

// lines reads a file until the context given to Within ends, and at most most
// bytes.
func (q *Queue) lines(r io.ReaderAt, from, size, limit, most int64) *lines {
	return &lines{r: r, next: from, size: size, max: limit, offset: from, ctx: q.ctx, left: most}
}

// stored reads the lines of an inbox that still hold their text, as far as the sidecar
// knows which do not. It needs no lock.
func (q *lane) stored(s *source) *lines {
	var from int64
	if m, _, err := q.readMeta(); err == nil && m != nil && m.Ino == s.ino {
		from = min(m.Punched, s.size)
	}
	return q.lines(s.file, from, s.size, q.maxEntry, mostInbox)
}

// part returns what is buffered of the present line, and whether that ends it.
func (l *lines) part() (part []byte, ends bool, err error) {
	if l.from == len(l.buf) {
		if err := l.fill(); err != nil {
			return nil, false, err
		}
	}
	part = l.buf[l.from:]
	if at := bytes.IndexByte(part, '\n'); at >= 0 {
		l.from += at + 1
		return part[:at], true, nil
	}
	l.from = len(l.buf)
	return part, false, nil
}

// read returns the next line; io.EOF means that nothing is left. Only the last line
// can be incomplete.
func (l *lines) read() (line, error) {
	if l.next >= l.size {
		return line{}, io.EOF
	}
	got := line{start: l.next}
	l.keep = l.keep[:0]
	var large hash.Hash
	for !got.complete {
		part, ends, err := l.part()
		if err == io.EOF {
			break
		}
		if err != nil {
			return line{}, err
		}
		got.complete = ends
		got.length += int64(len(part))
		switch {
		case large != nil:
			large.Write(part)
		case got.length > l.max && l.bare:
			got.tooLarge = true
		case got.length > l.max:
			large = sha256.New()
			large.Write(l.keep)
			large.Write(part)
		default:
			l.keep = append(l.keep, part...)
		}
	}
	got.end = got.start + got.length
	if got.complete {
		got.end++
	}
	if got.complete && got.length == 0 {
		got.end += l.passEmpty()
	}
	l.next = got.end
	if got.tooLarge {
		return got, nil
	}
	if large != nil {
		got.tooLarge, got.sum = true, hex.EncodeToString(large.Sum(nil))
	} else {
		got.raw = l.keep
	}
	return got, nil
}

// passEmpty skips the newlines that come next in the buffer, and returns how many.
func (l *lines) passEmpty() (n int64) {
	for l.from < len(l.buf) && l.buf[l.from] == '\n' {
		l.from++
		n++
	}
	return n
}

func (l *lines) fill() error {
	want := min(step, l.size-l.offset)
	if want <= 0 {
		return io.EOF
	}
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if l.left -= want; l.left < 0 {
		return ErrTooMuch
	}
	if l.buf == nil {
		l.buf = make([]byte, 0, min(step, l.size-l.next))
	}
	l.buf = l.buf[:cap(l.buf)]
	n, err := l.r.ReadAt(l.buf[:min(int64(cap(l.buf)), want)], l.offset)
	l.buf, l.from = l.buf[:n], 0
	l.offset += int64(n)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.EOF
	}
	return err
}

// id returns the entry id of a line, whether its bytes were kept or not.
func (l line) id() string {
	if l.tooLarge {
		return l.sum
	}
	return form.Sum(l.raw)
}
