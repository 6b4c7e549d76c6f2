package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// source is the opened file of lines; a nil file means that there is none.
type source struct {
	file     *os.File
	size     int64
	ino      uint64
	modified time.Time
}

func (r *Reader) openSource(flag int) (*source, error) {
	file, err := r.dir.OpenFile(r.name, flag)
	if errors.Is(err, fs.ErrNotExist) {
		return &source{}, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read %q: %v", r.path, err), file.Close())
	}
	s := &source{file: file, size: info.Size(), modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ino = st.Ino
	}
	return s, nil
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// bytes returns [from, to); the caller bounds it.
func (s *source) bytes(from, to int64) ([]byte, error) {
	if from < 0 || to < from || to > s.size {
		return nil, io.ErrUnexpectedEOF
	}
	data := make([]byte, to-from)
	if len(data) == 0 {
		return data, nil
	}
	n, err := s.file.ReadAt(data, from)
	if n == len(data) {
		return data, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // it was truncated while we looked
	}
	return nil, err
}

// sum hashes [from, to); "" when it cannot be read.
func (s *source) sum(from, to int64) string {
	data, err := s.bytes(from, to)
	if err != nil {
		return ""
	}
	return sumOf(data)
}

// sumOf hashes bytes; "" when they are not known.
func sumOf(data []byte) string {
	if data == nil {
		return ""
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// startsLine reports whether a line begins at an offset.
func (s *source) startsLine(offset int64) bool {
	if offset == 0 {
		return true
	}
	b, err := s.bytes(offset-1, offset)
	return err == nil && b[0] == '\n'
}

// differs reports whether [from, to) contains two different whole lines.
func (s *source) differs(from, to int64) bool {
	data, err := s.bytes(from, to)
	if err != nil {
		return false
	}
	if from > 0 { // the first line may be cut
		_, data, _ = bytes.Cut(data, []byte{'\n'})
	}
	var one []byte
	for l := range bytes.Lines(data) {
		l = bytes.TrimSpace(l)
		if len(l) == 0 {
			continue
		}
		if one != nil && !bytes.Equal(one, l) {
			return true
		}
		one = l
	}
	return false
}
