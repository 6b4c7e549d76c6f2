package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/durable"
)

// Readers skip lines that are longer than this or are not events: a writer that
// died left them, or others wrote them.
const maxEventLine = 1 << 20

// lookAgain is how often a reader that follows the journal looks for more.
const lookAgain = 200 * time.Millisecond

// Read returns the events of a fleet's journal, the oldest first, from the old file
// and the present one. A missing journal is empty. An error is the last thing that
// it yields.
func Read(stateDir string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		present, _ := readBacklog(stateDir, yield)
		present.close()
	}
}

// Follow yields everything that Read does, calls caughtUp, and continues with what
// is added until ctx ends.
func Follow(ctx context.Context, stateDir string, caughtUp func()) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		path := filepath.Join(stateDir, presentFile)
		r, more := readBacklog(stateDir, yield)
		defer func() { r.close() }()
		if !more {
			return
		}
		caughtUp()
		ticker := time.NewTicker(lookAgain)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if r != nil && !r.each(yield) {
				return
			}
			if r.current(path) {
				continue
			}
			next, err := openReader(path)
			if err != nil {
				continue
			}
			// What was written before the file was moved is read first.
			if r != nil && !r.each(yield) {
				_ = next.f.Close()
				return
			}
			r.close()
			r = next
		}
	}
}

// readBacklog yields what there is and returns the reader of the present file, or
// nil, and whether more is wanted.
func readBacklog(stateDir string, yield func(Event, error) bool) (present *reader, more bool) {
	present, err := openReader(filepath.Join(stateDir, presentFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		yield(Event{}, err)
		return nil, false
	}
	for _, r := range openPast(stateDir) {
		defer r.close()
		if !r.each(yield) {
			return present, false
		}
	}
	return present, present == nil || present.each(yield)
}

// openPast opens the old file and the full one, if they exist: both before or both
// after the one was merged into the other.
func openPast(stateDir string) []*reader {
	for try := 0; ; try++ {
		var past []*reader
		full, fullErr := openReader(filepath.Join(stateDir, fullFile))
		if old, err := openReader(filepath.Join(stateDir, oldFile)); err == nil {
			past = append(past, old)
		}
		if fullErr == nil {
			past = append(past, full)
		}
		_, err := os.Lstat(filepath.Join(stateDir, fullFile))
		if errors.Is(err, fs.ErrNotExist) == errors.Is(fullErr, fs.ErrNotExist) || try == 3 {
			return past
		}
		for _, r := range past {
			r.close()
		}
	}
}

// reader reads whole lines of one file, and continues where it stopped.
type reader struct {
	f  *os.File
	at int64 // the end of the last whole line
}

func openReader(path string) (*reader, error) {
	f, err := durable.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &reader{f: f, at: beginning(f)}, nil
}

// mostRead is how much of a file is read, from its end: our files are never larger,
// but something else may be in their place.
const mostRead = 4 * fullSize

func beginning(f *os.File) int64 {
	if info, err := f.Stat(); err == nil {
		return max(0, info.Size()-mostRead)
	}
	return 0
}

func (r *reader) close() {
	if r != nil {
		_ = r.f.Close()
	}
}

// current reports whether path still names the file that is being read, and is not
// shorter than what was read of it.
func (r *reader) current(path string) bool {
	if r == nil {
		return false
	}
	mine, err := r.f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err != nil || os.SameFile(mine, named) && named.Size() >= r.at
}

// each yields the events that are there now. It returns false when no more are
// wanted.
func (r *reader) each(yield func(Event, error) bool) bool {
	in := bufio.NewReaderSize(io.NewSectionReader(r.f, r.at, 1<<62), 64<<10)
	for {
		line, length, err := durable.Line(in, maxEventLine)
		if err != nil {
			return true
		}
		r.at += length
		var e Event
		if json.Unmarshal(line, &e) != nil || e.Kind == "" {
			continue
		}
		if !yield(e, nil) {
			return false
		}
	}
}
