package intake

import (
	"bytes"
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Bounds of what is read at once, in bytes.
const (
	// block is how much is read by one call.
	block = 256 << 10
	// mostKept is how much of a line that is too long is kept.
	mostKept = 8 << 20
	// mostSkipped is how much is read, in one taking, of what is not kept.
	mostSkipped = 64 << 20
)

// errEnough means that a reader has skipped mostSkipped bytes: the next taking goes on.
var errEnough = errors.New("the rest of the line is left for later")

// source is an open file of lines.
type source interface {
	io.ReaderAt
	io.Seeker // for its holes; what is read is read by offset
}

// piece is a line, or as much of it as there is.
type piece struct {
	start    int64
	raw      []byte // without the newline; valid until the next is read
	cut      bool   // it is longer: the reader skips what follows
	complete bool   // it ends with a newline
}

// lines reads lines from a position to an end, with bounded memory. A line of more than most
// bytes is returned once they are read, and what follows of it is skipped.
type lines struct {
	from     source
	position int64 // of what was not returned or skipped yet
	end      int64 // where reading ends, whatever is appended meanwhile
	most     int64
	skipping bool

	buf      []byte // what was read from position on
	searched int    // so much of it has no newline
	skipped  int64
}

// next returns the next line; io.EOF means that nothing is left.
func (l *lines) next(ctx context.Context) (piece, error) {
	if l.skipping {
		if err := l.skip(ctx); err != nil {
			return piece{}, err
		}
	}
	for {
		length, whole := len(l.buf), false
		if i := bytes.IndexByte(l.buf[l.searched:], '\n'); i >= 0 {
			length, whole = l.searched+i, true
		}
		if int64(length) > l.most {
			p := l.take(int(l.most), 0)
			p.cut, l.skipping = true, true
			return p, nil
		}
		if whole {
			return l.take(length, 1), nil
		}
		l.searched = length
		switch err := l.fill(ctx); {
		case err == nil:
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			return piece{start: l.position, raw: l.buf}, nil
		default:
			return piece{}, err
		}
	}
}

// take returns the first n bytes of the buffer, and passes them and the newline behind them.
func (l *lines) take(n, newline int) piece {
	p := piece{start: l.position, raw: l.buf[:n:n], complete: newline > 0}
	l.buf, l.searched = l.buf[n+newline:], 0
	l.position += int64(n + newline)
	return p
}

// fill reads one block more.
func (l *lines) fill(ctx context.Context) error {
	at := l.position + int64(len(l.buf))
	want := min(block, l.end-at)
	if want <= 0 {
		return io.EOF
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if cap(l.buf)-len(l.buf) < int(want) {
		grown := make([]byte, len(l.buf), max(2*len(l.buf), 2*block)+int(want))
		copy(grown, l.buf)
		l.buf = grown
	}
	n, err := l.from.ReadAt(l.buf[len(l.buf):len(l.buf)+int(want)], at)
	l.buf = l.buf[:len(l.buf)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.EOF
	}
	return err
}

// skip passes the rest of a line. The holes of a file have no newline, and are not read.
func (l *lines) skip(ctx context.Context) error {
	for {
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			l.take(i, 1)
			l.skipping = false
			return nil
		}
		l.skipped += int64(len(l.buf))
		l.position += int64(len(l.buf))
		l.buf, l.searched = l.buf[:0], 0
		if l.skipped >= mostSkipped {
			return errEnough
		}
		switch data, err := l.from.Seek(l.position, unix.SEEK_DATA); {
		case err == nil && data > l.position:
			l.position = min(data, l.end)
		case errors.Is(err, unix.ENXIO): // a hole up to the end
			l.position = l.end
		}
		if err := l.fill(ctx); err != nil {
			return err
		}
	}
}
