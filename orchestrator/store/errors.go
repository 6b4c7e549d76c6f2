package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
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
type RefusedError struct{ Path, why string }

// Error says why.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("cannot use the store %q: %s", e.Path, e.why)
}

// LostError means that the store was removed, replaced or cut while it was open: what is
// written now would not be there later, so nothing is.
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
	return "stop the fleet; put the file back, or restore a backup: heartbeat restore FILE"
}

// FullError means that the disk, or what this user may have of it, is full. The change was
// not made.
type FullError struct {
	path string
	why  error
}

// Error says which disk.
func (e *FullError) Error() string {
	return fmt.Sprintf("cannot write the store %q: no space is left: %v", e.path, e.why)
}

// Unwrap returns why.
func (e *FullError) Unwrap() error { return e.why }

// Hint says what to do.
func (e *FullError) Hint() string {
	return fmt.Sprintf("make room on the disk of %q (df); the fleet goes on by itself", e.path)
}

// BusyError means that another process holds the store's lock, most likely a person's
// sqlite3 with an open transaction. The change was not made.
type BusyError struct {
	path string
	why  error
}

// Error says for how long.
func (e *BusyError) Error() string {
	return fmt.Sprintf("cannot write the store %q: another process has had it locked for %v: %v", e.path, busyFor, e.why)
}

// Unwrap returns why.
func (e *BusyError) Unwrap() error { return e.why }

// Hint says how to find the process.
func (e *BusyError) Hint() string {
	return fmt.Sprintf("find who has it open, and end it: fuser -v %q", e.path)
}

// DamagedError means that the database is damaged.
type DamagedError struct {
	Path string
	why  error
}

// Error says what SQLite has found.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the store %q is damaged: %v", e.Path, e.why)
}

// Unwrap returns why.
func (e *DamagedError) Unwrap() error { return e.why }

// Hint says what to do.
func (e *DamagedError) Hint() string {
	return "stop the fleet and restore a backup: heartbeat restore FILE"
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

// IsDuplicate reports whether a row was refused because its key is there already.
func IsDuplicate(err error) bool {
	return code(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code(err) == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// typed is implemented by errors that classify has made.
type typed interface {
	error
	ofStore()
}

func (*FullError) ofStore()    {}
func (*BusyError) ofStore()    {}
func (*DamagedError) ofStore() {}

// classify gives an error of SQLite its type. One that has one already keeps it.
func classify(path string, err error) error {
	if _, is := errors.AsType[typed](err); is {
		return err
	}
	if isFull(err) {
		return &FullError{path, err}
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return &BusyError{path, err}
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &DamagedError{path, err}
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
