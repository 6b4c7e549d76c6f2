package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Tail calls do with the last window bytes of a file, in small pieces, until do
// returns false. A piece begins with the last overlap bytes of the one before; it
// is valid until do returns. A missing file has no pieces.
func (f *Folder) Tail(name string, window int64, overlap int, do func(piece []byte) bool) error {
	file, err := f.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f.fail("read", name, err)
	}
	from := max(0, info.Size()-window)
	r := io.NewSectionReader(file, from, info.Size()-from)
	buf := make([]byte, 64<<10+overlap)
	for kept := 0; ; {
		n, err := r.Read(buf[kept:])
		if n > 0 && !do(buf[:kept+n]) || err == io.EOF {
			return nil
		}
		if err != nil {
			return f.fail("read", name, err)
		}
		rest := min(kept+n, overlap)
		copy(buf, buf[kept+n-rest:kept+n])
		kept = rest
	}
}

// LastLine returns the last line of a file without its newline, if it has one and
// is at most limit bytes long; otherwise, and for a missing file, nil. It reads
// little more than the line.
func (f *Folder) LastLine(name string, limit int64) ([]byte, error) {
	file, err := f.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, f.fail("read", name, err)
	}
	size := info.Size()
	for n := min(4<<10, size); n > 0; n = min(4*n, size) {
		tail := make([]byte, n)
		if _, err := file.ReadAt(tail, size-n); err != nil {
			return nil, f.fail("read", name, err)
		}
		line, whole := bytes.CutSuffix(tail, []byte{'\n'})
		if !whole {
			return nil, nil
		}
		if at := bytes.LastIndexByte(line, '\n'); at >= 0 || n == size {
			return line[at+1:], nil
		}
		if n > limit {
			return nil, nil
		}
	}
	return nil, nil
}
