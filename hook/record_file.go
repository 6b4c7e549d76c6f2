package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// recordName is the session record's name in home.
const recordName = "session.json"

func recordPath(home string) string { return filepath.Join(home, recordName) }

// maxRecord bounds what is believed of session.json: the largest field is
// LastReply at 64 KiB, six times that when every byte is escaped.
const maxRecord = 1 << 20

// ReadRecord reads home/session.json without following links, at most 1 MiB
// of it. It returns nil, nil when there is none.
func ReadRecord(home string) (*Record, error) {
	data, err := readBounded(recordPath(home), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the session record: %w", err)
	}
	r := new(Record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("cannot read the session record %q: %w", recordPath(home), err)
	}
	r.carry(readClock())
	return r, nil
}

// readBounded reads a regular file, without following a link and without
// blocking on a FIFO; a file over limit bytes is an error.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	data := make([]byte, 0, min(info.Size(), limit)+1)
	for int64(len(data)) <= limit {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%q is larger than %d bytes", path, limit)
}

// Write replaces home/session.json atomically (no sync). The caller holds
// the hook lock, except the shim before the client was started.
func (r *Record) Write(home string) (err error) {
	r.Clock = readClock()
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot write the session record: %w", err)
	}
	path := recordPath(home)
	// One name, because there is one writer at a time; what a killed one
	// left goes first.
	temp := filepath.Join(home, "."+recordName+".tmp")
	os.Remove(temp)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write the session record: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return fmt.Errorf("cannot write the session record: %w", err)
	}
	return nil
}

// WatchRecord tells when home/session.json may have changed, until stop is
// called. The channel is nil where the system cannot tell (no inotify, or no
// instance of it left): the caller looks more often then.
func WatchRecord(home string) (changed <-chan struct{}, stop func()) {
	return notify(recordPath(home))
}

// End rules that the session ends, unless an earlier ruling stands that is
// final or weightier (anything outweighs drained and released). The phase
// stays what it is.
func (r *Record) End(why End, detail string, now time.Time) {
	if old := r.Ruling; old != nil {
		if old.Final || !light(old.Why) || light(why) {
			return
		}
	}
	r.Ruling = &Ruling{Why: why, Detail: detail, At: now}
}

// light reports whether any other ruling outweighs this one.
func light(why End) bool { return why == EndDrained || why == EndReleased }

// TokenHash returns what Record.TokenHash holds for a token.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
