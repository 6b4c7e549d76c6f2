package handover

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
)

// Limits of one look at a transcript, in bytes.
const (
	MaxLook = 64 << 20
	MaxLine = 16 << 20
)

// eachLine calls do with the complete lines of a transcript from an offset on and
// where each ends, until do returns false. A transcript that is shorter, or has
// more than may be read at once, is an error.
func eachLine(path string, offset int64, do func(line []byte, end int64) bool) error {
	f, err := durable.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() < offset:
		return fmt.Errorf("%q is shorter than it was", path)
	case info.Size()-offset > MaxLook:
		return fmt.Errorf("%q has more than %d bytes to look at", path, MaxLook)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(f, MaxLook), 64<<10)
	for {
		line, length, err := durable.Line(in, MaxLine)
		if errors.Is(err, io.EOF) {
			return nil // the rest of the line is still to come
		}
		if err != nil {
			return err
		}
		if offset += length; !do(line, offset) {
			return nil
		}
	}
}

// Tape is a transcript that is read on: each line of it once.
type Tape struct {
	Path   string
	Offset int64 // where the next look begins
}

// Read calls do with the complete lines that are new. What lies too far back to be
// looked at is passed over, and a transcript that cannot be read has no lines.
func (t *Tape) Read(do func(line []byte)) {
	size := TranscriptSize(t.Path)
	if size == t.Offset {
		return
	}
	if size-t.Offset > MaxLook {
		t.Offset = size - MaxLook/2 // amid a line, which is no record then
	}
	_ = eachLine(t.Path, t.Offset, func(line []byte, end int64) bool {
		t.Offset = end
		do(line)
		return true
	})
}

// FindTranscript looks in a client's configuration folder for the transcript of a
// conversation; "" if the client has written none. An error means that this cannot
// be determined.
func FindTranscript(configDir, id string) (string, error) {
	if id == "" || filepath.Base(id) != id || !filepath.IsAbs(configDir) {
		return "", fmt.Errorf("cannot look for the conversation %q in %q", id, configDir)
	}
	projects, err := durable.Open(filepath.Join(configDir, client.Claude.Transcript.Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer projects.Close()
	entries, err := projects.Entries()
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := filepath.Join(e.Name(), id+".jsonl")
		if info, err := projects.Stat(name); err == nil && info.Mode().IsRegular() {
			return filepath.Join(projects.Path(), name), nil
		}
	}
	if len(entries) >= durable.MaxEntries {
		return "", fmt.Errorf("there are over %d folders in %q", durable.MaxEntries, projects.Path())
	}
	return "", nil
}

// Prompted reports whether a transcript holds a prompt, or an answer, after an
// offset. One that cannot be read holds none.
func Prompted(path string, offset int64) bool {
	found := false
	_ = eachLine(path, offset, func(line []byte, _ int64) bool {
		found = client.Claude.Transcript.Begun(line)
		return !found
	})
	return found
}

// TranscriptSize is where the record of what is handed over now would appear.
func TranscriptSize(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
