package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// EndsWithin reports whether needle stands in the last window bytes of the
// file, reading it in small pieces. A missing file contains nothing.
func (f *Folder) EndsWithin(name string, needle []byte, window int64) (bool, error) {
	file, err := f.OpenFile(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, f.fail("read", name, err)
	}
	from := max(0, info.Size()-window)
	found, err := contains(io.NewSectionReader(file, from, info.Size()-from), needle)
	if err != nil {
		return false, f.fail("read", name, err)
	}
	return found, nil
}

// LastLine returns the last line of a file without its newline, when it has
// one and is at most limit bytes long; otherwise, and for a missing file, nil.
// It reads little more than the line.
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

func contains(r io.Reader, needle []byte) (bool, error) {
	buf := make([]byte, 64<<10+len(needle))
	kept := 0
	for {
		n, err := r.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], needle) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		rest := min(kept+n, len(needle)-1)
		copy(buf, buf[kept+n-rest:kept+n])
		kept = rest
	}
}
