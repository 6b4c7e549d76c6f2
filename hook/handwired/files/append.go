package files

import (
	"bytes"
	"os"
	"time"

	"heartbeat/hook/durable"
)

// A last line without its newline gets some time: a shell may write a long line in pieces, and
// takes no lock.
const (
	tailQuiet = time.Second     // not changed for so long, its writer has gone
	tailLimit = 5 * time.Second // the longest wait for a writer that never ends a line
	tailPause = 20 * time.Millisecond
)

// append appends a line with one write(2), which no other appender can split and which leaves
// nothing behind where it fails. When it returns nil, the line and the folder are on disk.
func (q *Queue) append(raw []byte) error {
	for began := time.Now(); q.isBeingWritten() && time.Since(began) < tailLimit; {
		time.Sleep(tailPause)
	}
	if err := q.dir.Append(q.name, append(bytes.Clone(raw), '\n')); err != nil {
		return err
	}
	return q.dir.Sync() // it may have been made by somebody who has not synced its name
}

// isBeingWritten reports whether the last line lacks its newline, and has changed lately.
func (q *Queue) isBeingWritten() bool {
	s, err := q.openSource(os.O_RDONLY)
	if err != nil || s.file == nil {
		return false // appending says what is wrong
	}
	defer s.close()
	open, err := durable.Unterminated(s.file)
	return err == nil && open && !isQuiet(s.modified, q.quiet)
}
