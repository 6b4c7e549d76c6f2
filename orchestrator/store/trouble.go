package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind names what is wrong with a store.
type Kind string

// The kinds.
const (
	Lost     Kind = "lost"      // it is gone, or another file stands in its place
	Refused  Kind = "refused"   // what stands there is not used
	Newer    Kind = "version"   // another version of heartbeat made its tables
	Damaged  Kind = "damaged"   // SQLite has found what cannot be
	Disk     Kind = "disk"      // the system refuses to read or write it
	ReadOnly Kind = "read-only" // nobody, or not this user, may write it
	Full     Kind = "full"      // no space is left
	Reserve  Kind = "reserve"   // no space is left but what was kept free for that
	Locked   Kind = "locked"    // another process writes it
	Cloned   Kind = "cloned"    // another machine has written it last
	Long     Kind = "log"       // its log only grows, because somebody reads without end
	Owed     Kind = "owed"      // it refuses a fact that the run knows
)

// Trouble is something that is wrong with a fleet's store.
type Trouble struct {
	Kind  Kind      `json:"kind"`
	Since time.Time `json:"since,omitzero"`
	// Text says what is wrong, Do what to type or to do.
	Text string `json:"text"`
	Do   string `json:"do"`
}

// TroubleOf is what an error of this package says; ok is false for any other.
func TroubleOf(err error, now time.Time) (t Trouble, ok bool) {
	e, ok := errors.AsType[typed](err)
	if !ok {
		return t, false
	}
	return Trouble{Kind: e.kind(), Since: now, Text: e.Error(), Do: e.Hint()}, true
}

// Examine looks at the store in a state directory that no run has, and changes nothing. That
// a fleet has none is no trouble, and that it has one of an earlier version neither: the next
// run brings it forward.
func Examine(ctx context.Context, dir string, now time.Time) []Trouble {
	return examine(ctx, dir, now, func(*Reader) error { return nil })
}

// ExamineWhole is Examine, and looks at all of the store, as Reader.Check.
func ExamineWhole(ctx context.Context, dir string, now time.Time) []Trouble {
	return examine(ctx, dir, now, func(r *Reader) error { return r.Check(ctx) })
}

func examine(ctx context.Context, dir string, now time.Time, check func(*Reader) error) []Trouble {
	err := ErrNone
	if _, e := os.Lstat(dir); e == nil {
		err = openTo(ctx, dir, check)
	}
	if old, is := errors.AsType[*VersionError](err); is && old.Has < old.Wants {
		return nil
	}
	if t, is := TroubleOf(err, now); is {
		t.Since = time.Time{}
		return []Trouble{t}
	}
	return nil
}

// openTo opens a store to check it.
func openTo(ctx context.Context, dir string, check func(*Reader) error) error {
	r, err := OpenReader(ctx, dir)
	switch {
	case errors.Is(err, ErrNone):
		return errors.Join(gone(dir), mayHold(dir))
	case err != nil:
		return err
	case isReadOnly(dir):
		err = &ReadOnlyError{cause{r.path, errReadOnly}}
	default:
		machine := ""
		err = r.Read(ctx, func(v *View) error { _, err := v.One(`SELECT machine FROM store`, nil, &machine); return err })
		if other := cloned(r.path, machine); err == nil && other != nil {
			err = other
		}
		err = cmp.Or(err, check(r))
	}
	return errors.Join(err, r.Close())
}

var errReadOnly = errors.New("its file system is read-only")

// others are the other processes that have a part of the index of a store's log locked, as
// far as the system tells.
func others(path string, of span) []int {
	return slices.DeleteFunc(lockedBy(path, of), func(pid int) bool { return pid == os.Getpid() })
}

// processes names those that have something of the store locked.
func processes(pids []int) string {
	var names []string
	for _, pid := range pids {
		name := "process " + strconv.Itoa(pid)
		if program := programOf(pid); program != "" {
			name += " (" + program + ")"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "another process"
	}
	return strings.Join(names, " and ")
}

// endOf is what to do about processes that have something of the store locked.
func endOf(pids []int, path string) string {
	if len(pids) == 0 {
		return fmt.Sprintf("find who has it open, and end that process: fuser -v %q", path)
	}
	kill := []string{"kill"}
	for _, pid := range pids {
		kill = append(kill, strconv.Itoa(pid))
	}
	return "end its transaction, or the process: " + strings.Join(kill, " ")
}

// What of the log's index is locked (sqlite.org/walformat.html, 2.3.2): by who writes, and by
// who reads.
var (
	writing = span{120, 120}
	reading = span{123, 127}
)

// span is bytes of a file, with the last one.
type span struct{ from, to uint64 }
