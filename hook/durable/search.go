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
