package ptyrun

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/durable"
)

// Log is a log of a terminal's output with a limited size. It is safe for
// concurrent use.
type Log struct {
	folder *durable.Folder
	name   string
	half   int64 // the size of one of the two files

	mu      sync.Mutex
	file    *os.File // nil after a failed rotation
	size    int64
	missing int64 // bytes that could not be written since the last note
	err     error // why
}

// NewLog opens NAME.log in a folder for appending (0600). When it reaches half of
// maxBytes it becomes NAME.log.1 and a new one begins, so that the two together
// stay below maxBytes. Of the logs in the folder, the newest ones remain: keep of
// them, this one included (0: all). The log closes the folder, also when NewLog
// fails. The folder may belong to someone who is not trusted: only a regular file
// in it is written to.
func NewLog(f *durable.Folder, name string, maxBytes int64, keep int) (*Log, error) {
	l := &Log{folder: f, name: name + ".log", half: max(maxBytes/2, 1)}
	var err error
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) {
		err = fmt.Errorf("cannot open the log %q: the name is not a file name", name)
	} else {
		err = l.open()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if keep > 0 {
		l.prune(keep)
	}
	return l, nil
}

func (l *Log) open() error {
	f, err := l.folder.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write logs p. It never fails: what cannot be written (the disk is full) is
// dropped and counted, and a note in the log shows the gap.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := p
	for len(rest) > 0 {
		if l.file == nil || l.size >= l.half {
			if l.err = l.rotate(); l.err != nil {
				break
			}
		}
		if l.missing > 0 && !l.note() {
			break
		}
		n, err := l.file.Write(rest[:min(int64(len(rest)), max(l.half-l.size, 1))])
		l.size += int64(n)
		rest = rest[n:]
		if err != nil {
			l.err = err
			break
		}
	}
	l.missing += int64(len(rest))
	return len(p), nil
}

// note writes how much is missing. Torn notes are possible on a full disk.
func (l *Log) note() bool {
	n, err := fmt.Fprintf(l.file, "\r\n[heartbeat: %d bytes of output could not be logged: %v]\r\n", l.missing, l.err)
	l.size += int64(n)
	if err != nil {
		return false
	}
	l.missing = 0
	return true
}

func (l *Log) rotate() error {
	if l.file != nil {
		_ = l.file.Close() // what it could not write was noted when it failed
		l.file = nil
	}
	if err := l.folder.Rename(l.name, l.name+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.open()
}

// Missing says how many bytes at the end of the output so far are not in the log,
// and why.
func (l *Log) Missing() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missing == 0 {
		return 0, nil
	}
	return l.missing, l.err
}

// Close closes the log. What is written later is dropped.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.folder.Close()
	if l.file != nil {
		err = errors.Join(l.file.Close(), err)
		l.file = nil
	}
	return err
}

// prune removes the oldest logs. If a log cannot be removed, the next session tries
// again.
func (l *Log) prune(keep int) {
	type old struct {
		name string
		at   time.Time
	}
	entries, err := l.folder.Entries()
	if err != nil {
		return
	}
	var logs []old
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), ".log") && e.Name() != l.name {
			logs = append(logs, old{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(logs, func(a, b old) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(b.name, a.name))
	})
	for _, o := range logs[min(len(logs), keep-1):] {
		_ = l.folder.Remove(o.name)
		_ = l.folder.Remove(o.name + ".1")
	}
}
