// Package volume says what the system tells of the file system that a folder is on.
package volume

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Volume is what is known of a file system.
type Volume struct {
	// Network is the name of one that other machines can write, or that is in another system; "":
	// it is none.
	Network string
	// Fuse is true if a program keeps it, InMemory if it is gone with the machine's power.
	Fuse, InMemory bool
	// ReadOnly is true if nothing can be written, NoExec if no program of it can be run.
	ReadOnly, NoExec bool
	// Free and Total are bytes for this user, FreeFiles is inodes; Files is 0
	// where the file system does not count them.
	Free, Total      uint64
	FreeFiles, Files uint64
}

// Of returns what is known of the file system that a folder is on (statfs(2)).
func Of(dir string) (Volume, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Volume{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	v := kindOf(&st)
	size := uint64(st.Bsize)
	v.Free, v.Total = st.Bavail*size, st.Blocks*size
	v.FreeFiles, v.Files = st.Ffree, st.Files
	return v, nil
}

// Nearest is Of for a folder that may not be there yet: of the nearest one above that is, at.
func Nearest(dir string) (v Volume, at string, err error) {
	for at = dir; ; at = filepath.Dir(at) {
		if v, err = Of(at); err == nil || at == filepath.Dir(at) {
			return v, at, err
		}
	}
}
