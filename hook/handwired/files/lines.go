package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	form "heartbeat/queue/line"
)

// Limits, in bytes, on how much of a file is read at once: an agent can make its files any size
// at no cost, for example a sparse one of 4 TB.
const (
	mostLines   = 1 << 30   // of the file of lines: a million prompts of a kilobyte
	mostFind    = 64 << 20  // of it, to find the line that was done last
	mostRecords = 256 << 20 // of dead letters, outbox or ids
	step        = 64 << 10  // in one read(2)
)

// line is a stretch of a file up to and including a newline. A run of empty lines may be one.
type line struct {
	start, end int64
	raw        []byte // without the newline; valid until the next line is read
	tooLarge   bool   // then raw is not there
	complete   bool   // it ends with a newline
	length     int64  // without its newline
	sum        string // entry id of one that is too large
}

// id is the entry id of a line, whether its bytes were kept or not.
func (l line) id() string {
	if l.tooLarge {
		return l.sum
	}
	return form.Sum(l.raw)
}

// isBlank reports whether nothing but white space stands on the line.
func (l line) isBlank() bool { return !l.tooLarge && len(bytes.TrimSpace(l.raw)) == 0 }

// lines reads a file forward with bounded memory: a line over max is hashed, not kept.
type lines struct {
	r    io.ReaderAt
	next int64 // offset of the first byte not returned yet
	size int64 // where reading ends, whatever is appended meanwhile
	max  int64
	left int64 // how much may still be read
	bare bool  // lines over max are passed over, not hashed

	buf    []byte // read and not returned yet: buf[from:]
	from   int
	offset int64 // of the first byte not read yet
	keep   []byte
}

// linesOf reads [from, size) of a file, at most most bytes of it.
func linesOf(r io.ReaderAt, from, size, limit, most int64) *lines {
	return &lines{r: r, next: from, size: size, max: limit, offset: from, left: most}
}

// read returns the next line; io.EOF means that nothing is left. Only the last one can be
// incomplete.
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
	switch {
	case large != nil:
		got.tooLarge, got.sum = true, hex.EncodeToString(large.Sum(nil))
	case !got.tooLarge:
		got.raw = l.keep
	}
	return got, nil
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

// ignoreEOF is for loops over lines: their end is no error.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
