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

// maxRecord bounds how much of session.json is read: the largest field is LastReply
// at 64 KiB, six times that when every byte is escaped.
const maxRecord = 1 << 20

// Shown is the content of session.json, whoever wrote it. It is read for the recovery of a
// session whose shim was killed, and for nothing else: code that acts on it first makes a Record
// of it, from the parts that can be trusted.
type Shown Record

// ReadRecord reads home/session.json without following links, at most 1 MiB
// of it. It returns nil, nil when there is none.
func ReadRecord(home string) (r *Shown, err error) {
	err = durable.Within(filepath.Dir(home), home, func(f *durable.Folder) error { r, err = readRecord(f); return err })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the session record: %w", err)
	}
	return r, nil
}

// readRecord reads session.json in a .heartbeat folder. It makes sure that none of
// its times is in the future.
func readRecord(f *durable.Folder) (*Shown, error) {
	data, err := f.Read(recordName, maxRecord)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%q is not a record: %w", filepath.Join(f.Path(), recordName), err)
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
		err = durable.Within(filepath.Dir(home), home, func(f *durable.Folder) error { return write(f, append(data, '\n')) })
	}
	if err != nil {
		return fmt.Errorf("cannot write the session record: %w", err)
	}
	return nil
}

// write replaces session.json. One temporary name is enough, because there is only
// one writer at a time; it first removes what a killed writer left.
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

// End records the ruling that the session ends, unless an earlier ruling is final
// or outweighs it (anything outweighs drained and released). It does not change the
// phase.
func (r *Record) End(why End, detail string, now time.Time) {
	if old := r.Ruling; old != nil && (old.Stands() || light(why)) {
		return
	}
	r.Ruling = &Ruling{Why: why, Detail: detail, At: now}
}

// light reports whether any other ruling outweighs this one.
func light(why End) bool { return why == EndDrained || why == EndReleased }

// Stands reports whether the ruling is definite: no other ruling replaces it, and
// no starting turn takes it back.
func (r *Ruling) Stands() bool { return r.Final || !light(r.Why) }

// FromHooks reports whether hooks make this ruling. The shim makes all others.
func (e End) FromHooks() bool {
	switch e {
	case EndDrained, EndReleased, EndRunaway, EndAPIFailure, EndDialog:
		return true
	}
	return false
}

// TokenHash returns the value of Record.TokenHash for a token.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
