package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

const (
	openTries  = 16               // how often the inbox may be replaced while append opens it
	appendWait = 10 * time.Second // for other appenders

	// A last line without its newline gets some time: a shell may write a long line in pieces,
	// and takes no lock.
	tailQuiet = time.Second     // not grown for so long, its writer has gone
	tailLimit = 5 * time.Second // the longest wait for a writer that never ends a line
	tailPause = 20 * time.Millisecond
)

// append appends a line, with one write(2) that no other appender can split and that leaves
// nothing behind where it fails. When it returns nil, the line and the folder are on disk.
func (q *Queue) append(raw []byte) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), appendWait)
	defer cancel()
	file, err := q.openLocked(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data := append(bytes.Clone(raw), '\n')
	unfinished, err := q.isUnfinished(ctx, file)
	if err != nil {
		return fmt.Errorf("cannot append to %q: %v", q.path, err)
	}
	if unfinished { // otherwise ours would be joined to it
		data = append([]byte{'\n'}, data...)
	}
	err = q.dir.Do(durable.Step{Verb: durable.Write, Name: q.name, Data: data}, func() error { return durable.WriteWhole(file, data) })
	if err != nil {
		return fmt.Errorf("cannot append to %q: %w", q.path, err)
	}
	if err := q.dir.SyncData(file, q.name); err != nil {
		return err
	}
	return q.dir.Sync() // it may be new, or made by somebody who has not synced its name
}

// openLocked opens the inbox, locks it against other appenders, and checks that the name still
// refers to it.
func (q *Queue) openLocked(ctx context.Context) (*os.File, error) {
	for range openTries {
		file, err := q.dir.OpenFile(q.name, os.O_RDWR|os.O_APPEND)
		if errors.Is(err, fs.ErrNotExist) {
			err = q.dir.Do(durable.Step{Verb: durable.Create, Name: q.name}, func() (err error) {
				file, err = q.dir.OpenFile(q.name, os.O_RDWR|os.O_APPEND|os.O_CREATE)
				return err
			})
		}
		if err != nil {
			return nil, err
		}
		if err := flock.OnFile(ctx, file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		opened, err := file.Stat()
		named, nameErr := q.dir.Stat(q.name)
		if err == nil && nameErr == nil && os.SameFile(opened, named) {
			return file, nil
		}
		file.Close()
		if nameErr != nil && !errors.Is(nameErr, fs.ErrNotExist) {
			return nil, nameErr
		}
	}
	return nil, fmt.Errorf("cannot append to %q: it is replaced all the time", q.path)
}

// isUnfinished reports whether the last line has lacked its newline for a while.
func (q *Queue) isUnfinished(ctx context.Context, file *os.File) (bool, error) {
	began, grown, size := time.Now(), time.Now(), int64(-1)
	for {
		open, err := durable.Unterminated(file)
		if err != nil || !open {
			return false, err
		}
		info, err := file.Stat()
		if err != nil {
			return false, err
		}
		if info.Size() != size {
			size, grown = info.Size(), time.Now()
		}
		// A modification time in the future tells nothing: then only what was seen counts.
		if time.Since(info.ModTime()) >= q.quiet || time.Since(grown) >= q.quiet || time.Since(began) >= tailLimit {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(tailPause):
		}
	}
}
