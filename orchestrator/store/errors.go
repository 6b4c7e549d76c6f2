package store

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/hook/settings"
)

// ErrNone means that a fleet has no store.
var ErrNone = errors.New("the fleet has no store yet")

// ErrUnknown means that nobody can say whether a change was made: its commit returned an
// error after it was written. Ask the store, or do the same again under the same keys.
var ErrUnknown = errors.New("the change may have been made or not")

var errClosed = errors.New("the store is closed")

// VersionError means that another version of this program made a store's tables.
type VersionError struct {
	Path       string
	Has, Wants int
}

// Error says which version it is.
func (e *VersionError) Error() string {
	return fmt.Sprintf("cannot use the store %q: its tables have version %d, this heartbeat knows version %d", e.Path, e.Has, e.Wants)
}

// Hint says which heartbeat can use it.
func (e *VersionError) Hint() string {
	if e.Has > e.Wants {
		return "use the heartbeat that ran the fleet last, or a newer one (heartbeat version)"
	}
	return "start the fleet with this heartbeat once (heartbeat run): that brings the store to its version"
}

// RefusedError means that what stands at the store's name is not used.
type RefusedError struct{ Path, why, hint string }

// Error says why.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("cannot use the store %q: %s", e.Path, e.why)
}

// Hint says what to do.
func (e *RefusedError) Hint() string { return cmp.Or(e.hint, putBack) }

func isRefused(err error) bool {
	_, is := errors.AsType[*RefusedError](err)
	return is
}

// putBack is what to do where there is no store, or none that can be used.
const putBack = "put the file back, or restore a backup: heartbeat restore FILE"

// GoneError means that a fleet had a store, and has none.
type GoneError struct {
	path   string
	backup string // the newest; "": none is in the state directory
}

// Error says which.
func (e *GoneError) Error() string {
	return fmt.Sprintf("cannot find the store %q, which the fleet had", e.path)
}

// Hint says what to do.
func (e *GoneError) Hint() string {
	if e.backup == "" {
		return putBack
	}
	return "put the file back, or restore the newest backup: heartbeat restore " + e.backup
}

// LostError means that the store was removed, replaced or cut while it was open, or that its
// disk fails: what is written now would not be there later, so nothing is.
type LostError struct {
	path string
	why  error
}

// Error says what has become of it.
func (e *LostError) Error() string {
	return fmt.Sprintf("cannot write the store %q any more: %v", e.path, e.why)
}

// Unwrap returns why.
func (e *LostError) Unwrap() error { return e.why }

// Hint says what to do.
func (e *LostError) Hint() string {
	if why, is := errors.AsType[typed](e.why); is {
		return why.Hint() + "; then heartbeat run"
	}
	return putBack + "; then heartbeat run"
}

// LogError means that the log of an open store, or its index, was removed or replaced.
type LogError struct {
	what string
	left error // why what stood in the log is not in the database; nil: it is
}

// Error says what has become of it.
func (e *LogError) Error() string {
	said := fmt.Sprintf("its log (%s-wal and %s-shm) %s", Name, Name, e.what)
	if e.left != nil {
		said += fmt.Sprintf(", and what was done last could not be kept: %v", e.left)
	}
	return said
}

// Hint says what to do.
func (e *LogError) Hint() string {
	if e.left != nil {
		return putBack
	}
	return "nothing is lost: leave these files alone while the fleet runs"
}

// cause is what SQLite says of a file.
type cause struct {
	path string
	why  error
}

// Unwrap returns what SQLite says.
func (c *cause) Unwrap() error { return c.why }

// FullError means that the disk is full. The change was not made.
type FullError struct{ cause }

// Error says which disk.
func (e *FullError) Error() string {
	return fmt.Sprintf("cannot write the store %q: no space is left: %v", e.path, e.why)
}

// Hint says what to do.
func (e *FullError) Hint() string {
	return fmt.Sprintf("make room on its disk (df -h %s); then the fleet goes on by itself", settings.Quote(filepath.Dir(e.path)))
}

// BusyError means that another process holds the store's lock, most likely a person's
// sqlite3 with an open transaction. The change was not made.
type BusyError struct {
	cause
	by []int // the processes; none where that is not known
}

// Error says for how long.
func (e *BusyError) Error() string {
	return fmt.Sprintf("cannot write the store %q: %s has it locked", e.path, processes(e.by))
}

// Hint says how to find the process.
func (e *BusyError) Hint() string { return endOf(e.by, e.path) }

// ReadOnlyError means that the store may be read only. The change was not made.
type ReadOnlyError struct{ cause }

// Error says which.
func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("cannot write the store %q: it is read-only: %v", e.path, e.why)
}

// Hint says what to do.
func (e *ReadOnlyError) Hint() string {
	dir := settings.Quote(filepath.Dir(e.path))
	return fmt.Sprintf("ls -l %s; findmnt -T %s; after an error of the disk (dmesg) the system lets nobody write it", dir, dir)
}

// DiskError means that the system refuses to read or write the store's files: for an error of
// the disk, a quota that is used up, or because a process may open no more files.
type DiskError struct{ cause }

// Error says what SQLite says of it.
func (e *DiskError) Error() string {
	return fmt.Sprintf("cannot read or write the store %q: %v", e.path, e.why)
}

// Hint says where the system says more.
func (e *DiskError) Hint() string {
	return "look for errors of the disk (dmesg), a quota that is used up (quota), and a limit of open files (ulimit -n)"
}

// DamagedError means that the database is damaged.
type DamagedError struct{ cause }

// Error says what SQLite has found.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the store %q is damaged: %v", e.path, e.why)
}

// Hint says what to do.
func (e *DamagedError) Hint() string {
	return "heartbeat stop; then restore a backup: heartbeat restore FILE"
}

// ClonedError means that another machine has written a store last: it was cloned, or its disk
// was moved.
type ClonedError struct{ path string }

// cloned is nil where a store's last machine is this one, or one of the two has no id.
func cloned(path, machine string) *ClonedError {
	if here := machineID(); here == "" || machine == "" || machine == here {
		return nil
	}
	return &ClonedError{path}
}

// Error says which store it is.
func (e *ClonedError) Error() string {
	return fmt.Sprintf("another machine has written the store %q last", e.path)
}

// Hint says what follows.
func (e *ClonedError) Hint() string {
	return "if the other machine still has the fleet, let one of the two run it: each gives its agents what waits, and fires what is due; the next run here makes the store its own"
}

// code is SQLite's result code of an error (sqlite.org/rescode.html), or 0.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// isFull reports whether there was no room, also not for the index of the log, which is a
// file, too.
func isFull(err error) bool {
	return code(err)&0xff == sqlite3.SQLITE_FULL || code(err) == sqlite3.SQLITE_IOERR_SHMSIZE
}

func isBusy(err error) bool { return code(err)&0xff == sqlite3.SQLITE_BUSY }

// typed is implemented by errors that say what is wrong with a store.
type typed interface {
	error
	Hint() string
	kind() Kind
}

func (*VersionError) kind() Kind  { return Newer }
func (*RefusedError) kind() Kind  { return Refused }
func (*NetworkError) kind() Kind  { return Refused }
func (*GoneError) kind() Kind     { return Lost }
func (*LostError) kind() Kind     { return Lost }
func (*LogError) kind() Kind      { return Lost }
func (*FullError) kind() Kind     { return Full }
func (*BusyError) kind() Kind     { return Locked }
func (*ReadOnlyError) kind() Kind { return ReadOnly }
func (*DiskError) kind() Kind     { return Disk }
func (*DamagedError) kind() Kind  { return Damaged }
func (*ClonedError) kind() Kind   { return Cloned }

// classify gives an error of SQLite its type. One that has one already keeps it.
func classify(path string, err error) error {
	if _, is := errors.AsType[typed](err); is {
		return err
	}
	c := cause{path, err}
	if isFull(err) {
		return &FullError{c}
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return &BusyError{c, others(path, writing)}
	case sqlite3.SQLITE_READONLY:
		return &ReadOnlyError{c}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL:
		return &DiskError{c}
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &DamagedError{c}
	case sqlite3.SQLITE_ERROR:
		if strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column") { // a person has removed it
			return &DamagedError{c}
		}
	}
	return err
}

// opening says that a store cannot be opened, unless the error says so itself.
func opening(path string, err error) error {
	err = classify(path, err)
	if _, is := errors.AsType[typed](err); is || code(err) == 0 {
		return err
	}
	return fmt.Errorf("cannot open the store %q: %w", path, err)
}
