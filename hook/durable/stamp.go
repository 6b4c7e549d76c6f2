package durable

import (
	"errors"
	"io/fs"
	"syscall"
	"time"
)

// Stamp tells whether a file is still what it was, without reading it. Take it
// before the file is read. The zero value is the stamp of nothing that was seen.
type Stamp struct {
	known, exists, settled bool
	file                   Identity
	size, modified         int64
}

// Identity tells a file or folder from all others that exist at the same time: its inode
// may be used again when it is gone.
type Identity struct{ device, inode uint64 }

// IdentityOf is that of what os.Stat or os.Lstat returned.
func IdentityOf(info fs.FileInfo) (id Identity) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode = uint64(stat.Dev), stat.Ino
	}
	return id
}

// The clock of a file system stands still for a while, and the number of a file that
// was replaced is used again: a file that is changed twice within one tick looks the
// same. The kernel's clock ticks every 10 ms or faster (inode_set_ctime_current);
// some file systems, and times that have no fraction are a sign of them, count in
// steps of up to 2 s (mount(8), vfat).
const (
	tick       = 50 * time.Millisecond
	coarseTick = 2 * time.Second
)

// StampOf is the stamp of what os.Stat or os.Lstat returned. That a file is missing
// is a state, too; after any other error nothing is known.
func StampOf(info fs.FileInfo, err error) Stamp {
	if err != nil {
		return Stamp{known: errors.Is(err, fs.ErrNotExist)}
	}
	s := Stamp{known: true, exists: true, file: IdentityOf(info), size: info.Size(), modified: info.ModTime().UnixNano()}
	long := tick
	if info.ModTime().Nanosecond() == 0 {
		long = coarseTick
	}
	s.settled = time.Since(info.ModTime()).Abs() > long
	return s
}

// Same reports whether the file demonstrably has not changed between the stamp and
// a later one. A file that had been changed only a moment before the stamp was taken
// may have been changed once more since: it is not the same.
func (s Stamp) Same(later Stamp) bool {
	later.settled = s.settled
	return s.known && (s.settled || !s.exists) && s == later
}
