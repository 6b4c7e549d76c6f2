package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// network names the kind of file system that a folder is on, if it is not on a disk of this
// machine (statfs(2), MNT_LOCAL); "": it is.
func network(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if st.Flags&unix.MNT_LOCAL != 0 {
		return "", nil
	}
	return unix.ByteSliceToString(st.Fstypename[:]), nil
}

// born is when a file was made; 0: not known.
func born(path string) int64 {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0
	}
	return st.Btim.Nano()
}

// machineID is the machine's id; "": not looked for here.
func machineID() string { return "" }

// readOnly reports whether a folder's file system is mounted so.
func readOnly(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Flags&unix.MNT_RDONLY != 0
}

// roomIn is how many bytes are free for this user where a folder is.
func roomIn(dir string) (free uint64, onDisk bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

// lockedBy is not looked for here.
func lockedBy(string, span) []int { return nil }

// programOf is not looked for here.
func programOf(int) string { return "" }
