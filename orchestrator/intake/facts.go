package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"heartbeat/hook/durable"
)

// facts are what a look at a file shows.
type facts struct {
	device, inode int64
	size          int64
	modified      time.Time
}

// record is what the store knows of a file: see schema.sql.
type record struct {
	n             int64
	device, inode int64
	moved         bool
	position      int64
	size          int64
	seen          string
	skipping      bool
	lines         int64
	hash          string
	began, at     time.Time
}

// isOf reports whether a record is that of a file: of the same one, which has only grown. seen is
// the hash of what it holds up to the record's size. The number of a device is another one after
// a restart on some file systems, so it does not count.
func (r *record) isOf(f facts, seen string) bool {
	return r.inode == f.inode && f.size >= r.size && r.seen == seen
}

// How long a file must not have changed.
const (
	// lineQuiet is how long a last line without its newline must not have grown before it counts
	// as all that there is of it.
	lineQuiet = 5 * time.Second
	// fileQuiet is how long a file stays after it was taken in, though nobody has it open: who
	// opened it by its old name may not be through with that.
	fileQuiet = 2 * time.Second
	// longQuiet is how long either is where nobody can tell whether a writer has it open.
	longQuiet = 24 * time.Hour
)

// aheadFor is how far in the future a time may be that is just now: who calls may have looked at
// the clock before.
const aheadFor = time.Minute

// age is how long ago something was. A time far in the future, of a clock that was wrong, is as
// long ago as it is far.
func age(at, now time.Time) time.Duration {
	if ahead := at.Sub(now); ahead > aheadFor {
		return ahead
	}
	return max(0, now.Sub(at))
}

// isEnded reports whether nobody will end the last line of a file.
func isEnded(f facts, u durable.Writing, moved bool, now time.Time) bool {
	quiet := age(f.modified, now)
	return u == durable.NotWritten && quiet >= lineQuiet || u == durable.WritingUnknown && moved && quiet >= longQuiet
}

// isDone reports whether a file in the folder taken, all of which was taken in at a time, can go.
func isDone(f facts, u durable.Writing, at, now time.Time) bool {
	quiet := min(age(f.modified, now), age(at, now))
	return u == durable.NotWritten && quiet >= fileQuiet || u == durable.WritingUnknown && quiet >= longQuiet
}

// follow is the hash of some lines and one more.
func follow(hash, line string) string {
	sum := sha256.Sum256([]byte(hash + line))
	return hex.EncodeToString(sum[:])
}
