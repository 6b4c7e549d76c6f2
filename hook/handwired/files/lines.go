package files

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
)

// Limits, in bytes, on how much of a file is read at once: an agent can make its files any size
// at no cost, for example a sparse one of 4 TB.
const (
	mostLines   = 1 << 30   // of the file of lines: a million prompts of a kilobyte
	mostFind    = 64 << 20  // of it, to find the line that was done last
	mostRecords = 256 << 20 // of dead letters, outbox or ids
)

// line is a stretch of a file up to and including a newline.
type line struct {
	start, end int64
	raw        []byte // without the newline
	complete   bool   // it ends with a newline
	tooLarge   bool   // then raw is not there
	length     int64  // without its newline
	in         io.ReaderAt
}

// id is the entry id of a line, whether its bytes were kept or not.
func (l line) id() string {
	if !l.tooLarge {
		return form.Sum(l.raw)
	}
	h := sha256.New()
	_, _ = io.Copy(h, io.NewSectionReader(l.in, l.start, l.length)) // what cannot be read is not equal to anything
	return hex.EncodeToString(h.Sum(nil))
}

// isBlank reports whether nothing but white space stands on the line.
func (l line) isBlank() bool { return !l.tooLarge && len(bytes.TrimSpace(l.raw)) == 0 }

// lines reads a file forward with bounded memory.
type lines struct {
	file  io.ReaderAt
	in    *bufio.Reader
	next  int64 // offset of the first byte not returned yet
	limit int64 // a longer line is too large
	cut   bool  // there is more than may be read
}

// linesOf reads [from, size) of a file, whatever is appended meanwhile, and at most most bytes of
// it.
func linesOf(file io.ReaderAt, from, size, limit, most int64) *lines {
	length := min(size-from, most)
	in := bufio.NewReaderSize(io.NewSectionReader(file, from, length), int(min(length, 64<<10)))
	return &lines{file: file, in: in, next: from, limit: limit, cut: length < size-from}
}

// read returns the next line; io.EOF means that nothing is left. Only the last one can be
// incomplete.
func (l *lines) read() (line, error) {
	raw, n, err := durable.Line(l.in, l.limit+1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return line{}, err
	case err != nil && l.cut:
		return line{}, ErrTooMuch
	case n == 0:
		return line{}, io.EOF
	}
	got := line{start: l.next, end: l.next + n, complete: err == nil, length: n, in: l.file}
	if l.next = got.end; got.complete {
		got.length--
	}
	if got.tooLarge = got.length > l.limit; !got.tooLarge {
		got.raw = raw[:got.length]
	}
	return got, nil
}

// ignoreEOF is for loops over lines: their end is no error.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// eachRecord calls do for the lines of a file of records from an offset on, until do returns
// false. Those over limit are passed over.
func eachRecord(file *os.File, from, limit int64, do func(line) bool) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("cannot read %q: %v", file.Name(), err)
	}
	for l := linesOf(file, from, info.Size(), limit, mostRecords); ; {
		got, err := l.read()
		if err != nil {
			return ignoreEOF(err)
		}
		if !got.tooLarge && !do(got) {
			return nil
		}
	}
}
