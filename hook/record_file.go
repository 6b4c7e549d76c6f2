package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/durable"
)

// recordName is the session record's name in home.
const recordName = "session.json"

func recordPath(home string) string { return filepath.Join(home, recordName) }

// maxRecord bounds what is believed of session.json: the largest field is
// LastReply at 64 KiB, six times that when every byte is escaped.
const maxRecord = 1 << 20

// Shown is what session.json shows, whoever wrote that: to print it is all that
// it is good for as it is. What acts on it makes a Record of it first, of what
// can be believed.
type Shown Record

// ReadRecord reads home/session.json without following links, at most 1 MiB
// of it. It returns nil, nil when there is none.
func ReadRecord(home string) (r *Shown, err error) {
	err = inHome(home, func(f *durable.Folder) error { r, err = readRecord(f); return err })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the session record: %w", err)
	}
	return r, nil
}

// readRecord reads session.json in a folder .heartbeat. None of its times lies
// ahead.
func readRecord(f *durable.Folder) (*Shown, error) {
	data, err := f.Read(recordName, maxRecord)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%q is no record: %w", filepath.Join(f.Path(), recordName), err)
	}
	r.carry(readClock())
	now := time.Now()
	for _, t := range r.times() {
		if t.After(now) {
			*t = now
		}
	}
	return (*Shown)(r), nil
}

// write replaces home/session.json atomically (no sync).
func (r *Record) write(home string) error {
	r.Clock = readClock()
	data, err := json.Marshal(r)
	if err == nil {
		err = inHome(home, func(f *durable.Folder) error { return write(f, append(data, '\n')) })
	}
	if err != nil {
		return fmt.Errorf("cannot write the session record: %w", err)
	}
	return nil
}

// write puts data in place of session.json. It uses one temporary name, because
// there is one writer at a time; what a killed one left goes first.
func write(f *durable.Folder, data []byte) error {
	const temp = "." + recordName + ".tmp"
	_ = f.Remove(temp) // else it cannot be made, and that is said
	file, err := f.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.Rename(temp, recordName)
	}
	if err != nil {
		_ = f.Remove(temp)
	}
	return err
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
	if old := r.Ruling; old != nil && (old.Stands() || light(why)) {
		return
	}
	r.Ruling = &Ruling{Why: why, Detail: detail, At: now}
}

// light reports whether any other ruling outweighs this one.
func light(why End) bool { return why == EndDrained || why == EndReleased }

// Stands reports whether no other ruling takes this one's place, and no turn
// that begins takes it back.
func (r *Ruling) Stands() bool { return r.Final || !light(r.Why) }

// FromHooks reports whether hooks rule so. All other ends are the shim's to see.
func (e End) FromHooks() bool {
	switch e {
	case EndDrained, EndReleased, EndRunaway, EndAPIFailure, EndDialog:
		return true
	}
	return false
}

// TokenHash returns what Record.TokenHash holds for a token.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
